"""`gpu-pruner explain REF`: one look, one measurement, and everything that follows from them.

Answers what a controller with these settings would decide for a workload, and why. It looks and
measures through the controller's own cycle, in dry run, and writes nothing to the cluster.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import click

from gpu_pruner.cli.asking import FLAG, ask_controller, controller_address
from gpu_pruner.cli.completing import complete
from gpu_pruner.cli.explanation_table import print_explanation
from gpu_pruner.cli.given import loaded_from_flags
from gpu_pruner.cli.options import controller_options
from gpu_pruner.cli.plotting import Picture, drawable, save
from gpu_pruner.cli.printing import output_option, print_json
from gpu_pruner.cli.references import near, parse_question
from gpu_pruner.cli.wiring import connected
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.kube.lease import lease_namespace
from gpu_pruner.loop.explaining import Answer, Examined, Question
from gpu_pruner.model.rules import Mode
from gpu_pruner.observe.hold import HoldSwitch, SeenSwitch
from gpu_pruner.record.board import Board
from gpu_pruner.record.explanation import explanation, workload_explanation
from gpu_pruner.record.explanation_rows import Explanation, SettingRow
from gpu_pruner.record.logs import configure_logging
from gpu_pruner.settings.clock import clock_from_environment
from gpu_pruner.settings.loading import Loaded
from gpu_pruner.settings.telling import shown, told

_FINE, _FAILED = 0, 1

_NO_PAST = (
    "exporters are scraped from now on, so nothing is known of the window yet; "
    f"a controller that has been running knows it: {FLAG} URL"
)

_TOLD_SETTINGS = (
    "mode",
    "window_seconds",
    "settle_seconds",
    "idle_threshold",
    "coverage_ratio",
    "freshness_seconds",
    "liveness",
    "liveness_changes",
    "cycle_seconds",
    "confirmations",
    "notice_seconds",
    "keep_cap_seconds",
)
"""Settings that one workload's decision rests on, in the order of `Settings`."""


@click.command()
@click.argument("reference", metavar="REF")
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Draw the measured window into FILE.png or FILE.svg; needs the extra `plot`.",
)
@click.option(
    FLAG,
    metavar="URL",
    help="Ask a running controller instead of measuring here: one that scrapes exporters itself "
    "is the only one who holds a window of samples.",
)
@controller_options
@output_option
def explain(reference: str, plot: Path | None, controller: str | None, **flags: object) -> None:
    """Measure one workload in full, and say why it is judged as it is and what comes next.

    REF is kind/namespace/name, pod/namespace/name, node/NAME or gpu/UUID. Of a node or a GPU, every
    workload that holds a GPU of it is told.
    """
    configure_logging(str(flags["log_format"]), level=logging.WARNING)
    loaded = loaded_from_flags(flags)
    settings = loaded.settings
    question = parse_question(reference, custom=settings.custom_levers)
    output = str(flags["output"])
    if controller is not None:
        if plot is not None:
            raise ConfigurationError("draws what is measured here; leave it out", path="--plot")
        url = controller_address(controller)
        complete(lambda: _ask(url, question, output=output))
    if plot is not None:
        drawable(plot)
    complete(lambda: _explain(loaded, question, output=output, plot=plot))


async def _ask(url: str, question: Question, *, output: str) -> int:
    """Ask a controller, and print.

    Returns:
        As `_explain`.
    """
    return _printed(await ask_controller(url, question), output=output)


async def _explain(loaded: Loaded, question: Question, *, output: str, plot: Path | None) -> int:
    """Ask, print, and draw.

    Returns:
        0, or 1 where it exists and holds no GPU, or where a breaker keeps a cycle from saying
        anything.

    Raises:
        ConfigurationError: nothing is called so.
    """
    settings = loaded.settings
    rehearsal = settings.model_copy(update={"mode": Mode.DRY_RUN})
    clock = clock_from_environment()
    async with connected(rehearsal, clock, Board(), one_pass=True) as controller:
        switch = HoldSwitch(controller.client, namespace=lease_namespace(settings.lease))
        controller.cycle.switch = SeenSwitch(switch)
        answer = await controller.cycle.explain(question)
    if settings.prometheus is None:
        sys.stderr.write(f"gpu-pruner: {_NO_PAST}\n")
    if not answer.examined:
        sys.stderr.write(f"gpu-pruner: {nobody(question, answer)}\n")
        return _FAILED
    code = _printed(written(question, answer, settings=told_settings(loaded)), output=output)
    if plot is not None:
        save(tuple(map(_picture, answer.examined)), plot, rules=answer.rules)
        sys.stderr.write(f"gpu-pruner: drawn into {plot}\n")
    return code


def _printed(rows: Explanation, *, output: str) -> int:
    """Print an explanation; breakers on standard error, because they say that nothing is done."""
    for breaker in rows.breakers:
        sys.stderr.write(f"gpu-pruner: {breaker.name}: {breaker.message}\n")
    if output == "json":
        print_json(rows)
    else:
        print_explanation(rows)
    return _FAILED if rows.breakers else _FINE


def written(question: Question, answer: Answer, *, settings: tuple[SettingRow, ...]) -> Explanation:
    """Return an answer as rows; the API answers the same ones."""
    now = answer.snapshot.now
    return explanation(
        str(question),
        [
            workload_explanation(
                one.decision,
                one.screened,
                one.verification,
                tracks=one.tracks,
                now=now,
                rules=answer.rules,
            )
            for one in answer.examined
        ],
        now=now,
        breakers=answer.snapshot.breakers,
        settings=settings,
    )


def told_settings(loaded: Loaded) -> tuple[SettingRow, ...]:
    """Return the settings that a decision rests on, each with where it comes from."""
    rows = {one.name: one for one in told(loaded)}
    return tuple(
        SettingRow(name, shown(rows[name].value), rows[name].origin) for name in _TOLD_SETTINGS
    )


def _picture(one: Examined) -> Picture:
    return Picture(
        title=one.decision.workload.root.ref,
        sentence=f"{one.decision.verdict.value}: {one.decision.message}",
        findings=one.decision.findings,
        tracks=one.tracks,
    )


def nobody(question: Question, answer: Answer) -> str:
    """Return why nothing is explained: it holds no GPU.

    Raises:
        ConfigurationError: nothing is called so, as far as anybody can see.
    """
    if answer.is_there(question):
        told = f"{question} holds no GPU" if question.root else f"nobody holds a GPU of {question}"
        return f"{told}; `once` lists those that do"
    likely = near(str(question), answer.names())
    hint = f"did you mean {' or '.join(likely)}?" if likely else "`once` lists what there is"
    raise ConfigurationError(f"nothing that holds a GPU is called {str(question)[:200]}; {hint}")
