"""`gpu-pruner notify test`: a sample of each kind of message through each channel.

Says of each what confirmed it, or why nothing did. Events are left out, because there is no
workload to store one on: `check` looks at the right to.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from dataclasses import dataclass

import click

from gpu_pruner.cli.completing import complete
from gpu_pruner.cli.given import settings_from_flags
from gpu_pruner.cli.options import config_options
from gpu_pruner.cli.wiring import outside_channels
from gpu_pruner.errors import NotificationError
from gpu_pruner.model.clock import Clock
from gpu_pruner.notify.channel import Audience, Channel
from gpu_pruner.notify.samples import ORDER, sample
from gpu_pruner.record.logs import configure_logging
from gpu_pruner.settings.clock import clock_from_environment
from gpu_pruner.settings.schema import Settings

_FINE, _FAILED = 0, 1


@click.group()
def notify() -> None:
    """Look after the channels through which people are told."""


@notify.command("test")
@config_options
def notify_test(**flags: object) -> None:
    """Send a sample of each kind of message through each channel, and say what arrived.

    Ends with 1 where a channel did not confirm one that it takes.
    """
    configure_logging(str(flags["log_format"]), level=logging.ERROR)
    settings = settings_from_flags(flags)
    complete(lambda: tried(settings, clock_from_environment()))


@dataclass(frozen=True, slots=True)
class _Try:
    """What became of one sample."""

    channel: str
    kind: str
    outcome: str
    """OK, FAIL, or - where the channel does not take the kind."""
    detail: str


async def tried(settings: Settings, clock: Clock) -> int:
    """Send the samples, one after the other through each channel, and print what became of them.

    Returns:
        The exit code.
    """
    async with outside_channels(settings, clock) as channels:
        tries = [await _try(channel, clock) for channel in channels]
    every = [one for of_channel in tries for one in of_channel]
    if not every:
        sys.stdout.write("No channel is set beside Events: see `channels` in the settings.\n")
    for one in every:
        sys.stdout.write(f"{one.outcome:5}{one.channel:16} {one.kind:10} {one.detail}\n")
    return _FAILED if any(one.outcome == "FAIL" for one in every) else _FINE


async def _try(channel: Channel, clock: Clock) -> list[_Try]:
    found: list[_Try] = []
    for kind in ORDER:
        if not channel.takes(kind):
            outcome, detail = "-", "not taken, by its settings"
        else:
            try:
                async with asyncio.timeout(channel.timeout_seconds):
                    detail = await channel.send(sample(kind, now=clock.now()), Audience())
                outcome = "OK"
            except TimeoutError:
                outcome, detail = "FAIL", f"no confirmation within {channel.timeout_seconds:g} s"
            except NotificationError as error:
                outcome, detail = "FAIL", str(error)
        found.append(_Try(channel.name, kind.value, outcome, detail))
    return found
