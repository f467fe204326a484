"""`gpu-pruner keep`, `exempt` and `release`: what people want of a workload, from the command line.

Writes the wish into the workload's GPUWorkload with the rights of whoever types; the controller
hears it in its next cycle. Decides nothing. The answer is the one that the HTTP API gives.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import TypeVar

import click

from gpu_pruner.act.intents import (
    LONGEST_REASON,
    Exempt,
    Keep,
    Kind,
    Release,
    Wish,
    Withdrawal,
    ask,
)
from gpu_pruner.act.levers import Levers
from gpu_pruner.cli.completing import complete
from gpu_pruner.cli.given import settings_from_flags
from gpu_pruner.cli.naming import root_named
from gpu_pruner.cli.options import kubernetes_options
from gpu_pruner.cli.orders import holds_no_gpu
from gpu_pruner.cli.printing import output_option, print_json
from gpu_pruner.cli.reasons import REASON
from gpu_pruner.cli.references import parse_reference
from gpu_pruner.errors import ActionRefused, ConfigurationError
from gpu_pruner.kube.client import ClusterClient
from gpu_pruner.kube.reviews import our_name
from gpu_pruner.model.units import Seconds, Timestamp, parse_rfc3339, rfc3339
from gpu_pruner.model.workload import RootRef
from gpu_pruner.record.logs import configure_logging
from gpu_pruner.serve.wishes import WishAnswer, answer_to
from gpu_pruner.settings.clock import clock_from_environment
from gpu_pruner.settings.durations import parse_length
from gpu_pruner.settings.schema import Settings

F = TypeVar("F", bound=Callable[..., object])
Said = Callable[[str, Timestamp], Wish]
"""A wish, once it is known who asks and what time it is."""

_FINE = 0


def _length(_context: click.Context, _option: click.Parameter, text: str | None) -> Seconds | None:
    try:
        return None if text is None else parse_length(text)
    except ConfigurationError as error:
        raise click.BadParameter(str(error)) from error


def _moment(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> Timestamp | None:
    try:
        return None if text is None else parse_rfc3339(text)
    except ValueError as error:
        raise click.BadParameter(f"{error}, for example 2026-01-31T18:00:00Z") from error


def _why(_context: click.Context, _option: click.Parameter, text: str) -> str:
    if not text:
        raise click.BadParameter(f"say why, in 1 to {LONGEST_REASON} characters")
    return text


_REFERENCE = click.argument("reference", metavar="REF")
_REASON = click.option(
    "--reason",
    type=REASON,
    required=True,
    callback=_why,
    help="Why; everybody who wonders sees it.",
)
_WITHDRAW = click.option("--withdraw", is_flag=True, help="Take the wish back.")
_FOR = click.option(
    "--for", "length", callback=_length, metavar="LENGTH", help="How long from now, as 4h or 30d."
)


def _wish(command: F) -> F:
    """Add what the three commands share."""
    for option in (output_option, kubernetes_options, _WITHDRAW, _REASON, _REFERENCE):
        command = option(command)
    return command


@click.command()
@_wish
@_FOR
def keep(
    reference: str, length: Seconds | None, reason: str, *, withdraw: bool, **flags: object
) -> None:
    """Keep a workload for a while: it is neither warned nor paused.

    REF is kind/namespace/name, or pod/namespace/name. A new keep takes the place of the one before.
    """
    if withdraw == (length is not None):
        raise click.UsageError("give either --for or --withdraw")

    def said(by: str, now: Timestamp) -> Wish:
        return Keep(until=now + (length or 0.0), by=by, reason=reason)

    _ask(reference, _withdrawing(Kind.KEEP, reason) if withdraw else said, flags)


@click.command()
@_wish
@_FOR
@click.option(
    "--until",
    callback=_moment,
    metavar="TIME",
    help="Until when, with its zone, as 2026-01-31T18:00:00Z.",
)
def exempt(
    reference: str,
    length: Seconds | None,
    until: Timestamp | None,
    reason: str,
    *,
    withdraw: bool,
    **flags: object,
) -> None:
    """Exempt a workload for good, or until a time: it is neither warned nor paused.

    REF is kind/namespace/name, or pod/namespace/name.
    """
    if sum((withdraw, length is not None, until is not None)) > 1:
        raise click.UsageError("give one of --for, --until and --withdraw, or none")

    def said(by: str, now: Timestamp) -> Wish:
        end = until if length is None else now + length
        if end is not None and end <= now:
            raise ConfigurationError(f"--until: {rfc3339(end)} is over already")
        return Exempt(until=end, by=by, reason=reason)

    _ask(reference, _withdrawing(Kind.EXEMPT, reason) if withdraw else said, flags)


@click.command()
@_wish
def release(reference: str, reason: str, *, withdraw: bool, **flags: object) -> None:
    """Give a workload's GPUs back: it is paused in one of the next cycles, without notice.

    REF is kind/namespace/name, or pod/namespace/name. What others keep, exempt or hold stays, and
    so does what goes on working.
    """

    def said(by: str, now: Timestamp) -> Wish:
        return Release(at=float(int(now)), by=by, reason=reason)

    _ask(reference, _withdrawing(Kind.RELEASE, reason) if withdraw else said, flags)


def _withdrawing(kind: Kind, reason: str) -> Said:
    return lambda by, _: Withdrawal(of=kind, by=by, reason=reason)


def _ask(reference: str, said: Said, flags: dict[str, object]) -> None:
    configure_logging(str(flags["log_format"]), level=logging.WARNING)
    settings = settings_from_flags(flags)
    named = parse_reference(reference, custom=settings.custom_levers)
    complete(lambda: _asked(settings, named, said, output=str(flags["output"])))


async def _asked(settings: Settings, named: RootRef, said: Said, *, output: str) -> int:
    """Write a wish down and print what was written.

    Returns:
        0; everything else is an error.
    """
    clock = clock_from_environment()
    levers = Levers.of_settings(settings.custom_levers)
    client = await ClusterClient.connect(settings.kubernetes, clock=clock)
    try:
        root = await root_named(client, named, levers=levers)
        if refusal := await holds_no_gpu(client, root):
            raise ActionRefused(refusal)
        now = clock.now()
        wish = said(await our_name(client), now)
        await ask(client, root, wish, levers=levers)
    finally:
        await client.close()
    answer = answer_to(root.ref, wish, now=now, cap=settings.keep_cap_seconds)
    if output == "json":
        print_json(answer)
    else:
        sys.stdout.write(sentence(answer) + "\n")
    return _FINE


def sentence(answer: WishAnswer) -> str:
    """Say what was written, for people."""
    if answer.withdrawn is not None:
        return f"{answer.ref}: {answer.by} took the {answer.withdrawn} back"
    if answer.keep_until is not None:
        told = f"{answer.ref}: kept by {answer.by} until {answer.keep_until}"
        if answer.honoured_until == answer.keep_until:
            return told
        return f"{told}, which is honoured until {answer.honoured_until}"
    if answer.release_at is not None:
        told = f"{answer.ref}: released by {answer.by}; it is paused in one of the next cycles"
        return f"{told}, if nothing stands against it until {answer.honoured_until}"
    end = f"until {answer.exempt_until}" if answer.exempt_until else "for good"
    return f"{answer.ref}: exempted by {answer.by} {end}"
