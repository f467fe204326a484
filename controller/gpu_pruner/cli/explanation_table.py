"""An explanation for people at a terminal: from the sentence down to every signal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gpu_pruner.cli.printing import VERDICT_STYLES, console
from gpu_pruner.decide.wording import clock_time, minutes
from gpu_pruner.model.plan import Action
from gpu_pruner.model.signals import Signal
from gpu_pruner.model.units import HOUR, MINUTE, Seconds, Timestamp, parse_rfc3339
from gpu_pruner.record.explanation_rows import (
    DeviceExplanation,
    Explanation,
    SignalRow,
    WorkloadExplanation,
)

_LARGER = {"B": (2.0**30, "GiB"), "B/s": (1e6, "MB/s")}
"""Unit to how much of it makes a larger one."""
_HUGE = 1e6
"""From here on a value is written with a power of ten."""


def print_explanation(told: Explanation) -> None:
    """Print an explanation: every workload, and the settings that they are judged by."""
    out, now = console(), parse_rfc3339(told.at)
    for place, one in enumerate(told.workloads):
        if place:
            out.print()
        _print_workload(out, one, now=now)
    out.print("\n[bold]Settings[/] of this command, each with where it comes from")
    for row in told.settings:
        out.print(f"  {row.name}: {_plain(row.value)} ({row.origin})", soft_wrap=True)


def _print_workload(out: Console, one: WorkloadExplanation, *, now: Timestamp) -> None:
    style = VERDICT_STYLES.get(one.verdict, "bold")
    line = f"[bold]{_plain(one.ref)}[/]: [{style}]{one.verdict}[/] ({one.reason})"
    _say(out, f"{line}, state {one.clock.state}, {_count(one.gpus, 'GPU')}")
    _say(out, f"  {_plain(one.message)}")
    if one.rule not in one.message:
        _say(out, f"  Rule: {_plain(one.rule)}")
    for line in _notes(one):
        _say(out, f"  {_plain(line)}")
    _say(out, f"\n[bold]Next[/]{_due(one.next.at, now)}\n  {_plain(one.next.sentence)}")
    _section(out, "Clock", _clock(one, now=now))
    _section(out, "Wishes", (f"{wish.reason}: {wish.detail}" for wish in one.wishes))
    _section(out, "Who would be told", _told(one))
    _section(out, "Pods", _pods(one))
    for device in sorted(one.devices, key=lambda device: device.verdict != one.verdict):
        _print_device(out, device, now=now)
    _section(out, "What would change it", one.changes)


def _plain(text: str) -> str:
    """Return foreign text as it may stand on a terminal: no markup, and nothing that steers it."""
    return escape(
        "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)
    )


def _say(out: Console, text: str) -> None:
    out.print(text, soft_wrap=True)


def _section(out: Console, title: str, rows: Iterable[str]) -> None:
    """Print a titled list, or nothing where it is empty."""
    told = tuple(rows)
    if told:
        _say(out, f"\n[bold]{title}[/]")
    for row in told:
        _say(out, f"  {_plain(row)}")


def _notes(one: WorkloadExplanation) -> Iterator[str]:
    if not one.pods:
        yield "It has no pods, so there is nothing to measure."
    elif one.measured_at is None:
        yield "It has no device that could be measured."
    elif one.failure:
        yield f"The measurement failed: {one.failure}"
    if one.screen is not None:
        told = f"{one.screen.verdict}, {one.screen.reason}: {one.screen.message}"
        yield f"Without this measurement, a cycle says {told}"
    if one.obstacle and not one.obstacle.startswith(one.reason):
        yield f"It is never paused. {one.obstacle}"
    if one.action != Action.NONE.value:
        yield f"A cycle would do now: {one.action}."


def _count(number_of: int, what: str) -> str:
    return f"{number_of} {what}" if number_of == 1 else f"{number_of} {what}s"


def _due(moment: str | None, now: Timestamp) -> str:
    """Write a moment with the time that is left."""
    if moment is None:
        return ""
    at = parse_rfc3339(moment)
    return f" at {clock_time(at, now=now)}, {_wait(at - now)}"


def _wait(left: Seconds) -> str:
    if left >= 3 * HOUR:
        return f"in {_count(round(left / HOUR), 'hour')}"
    return f"in {_count(minutes(left), 'minute')}" if minutes(left) > 0 else "now"


def _clock(one: WorkloadExplanation, *, now: Timestamp) -> Iterator[str]:
    clock = one.clock
    wanted = _count(clock.confirmations_wanted, "look")
    yield f"found idle in {clock.confirmations} of {wanted} that have to agree"
    moments = (
        ("idle since", clock.idle_since),
        ("nominated at", clock.nominated_at),
        ("warned at", clock.warned_at),
        ("paused or due at", clock.pause_at),
        ("stands still since", clock.frozen_since),
        ("paused at", clock.paused_at),
        ("contested until", clock.contested_until),
    )
    for words, moment in moments:
        if moment is not None:
            yield f"{words} {clock_time(parse_rfc3339(moment), now=now)}"
    if clock.warned_via:
        yield f"warned via {', '.join(clock.warned_via)} in {clock.warned_mode}"
    if clock.object_name:
        yield f"kept in GPUWorkload {clock.object_name}"


def _told(one: WorkloadExplanation) -> Iterator[str]:
    for row in one.audience:
        yield f"{row.address} ({row.kind}), by {row.found}"
    yield from one.unread
    if not one.audience:
        yield "nobody is named on it, on its namespace or in the settings"


def _pods(one: WorkloadExplanation) -> Iterator[str]:
    for pod in one.pods:
        told = f"{pod.name} on {pod.node or 'no node'}: {pod.phase}, {pod.devices} of {pod.gpus} "
        told += f"GPUs found, Ready since {pod.ready_since or 'never'}"
        yield f"{told}. {pod.gap}: {pod.rule}" if pod.gap else told


def _print_device(out: Console, one: DeviceExplanation, *, now: Timestamp) -> None:
    style = VERDICT_STYLES.get(one.verdict, "bold")
    head = f"\n[bold]{_plain(one.device)}[/] of pod {_plain(one.pod)} on {_plain(one.node)}"
    head += f", {_plain(one.model or 'a model that is not told')}{', shared' if one.shared else ''}"
    _say(out, f"{head}: [{style}]{one.verdict}[/], {one.reason}")
    _say(out, f"  {_plain(one.detail)}")
    for line in _measured(one, now=now):
        _say(out, f"  {_plain(line)}")
    if one.signals:
        out.print(_signals(one, now=now))


def _measured(one: DeviceExplanation, *, now: Timestamp) -> Iterator[str]:
    begin, end = parse_rfc3339(one.begin), parse_rfc3339(one.end)
    yield (
        f"measured from {clock_time(begin, now=now)} to {clock_time(end, now=now)}, "
        f"{one.steps} steps of {one.step_seconds:g} s; {minutes(one.needed_seconds)} minutes needed"
    )
    if one.movement is not None:
        moved = one.movement
        yield f"{moved.signal} moved in {moved.changes} steps, {moved.wanted} are wanted"
    if one.draw is not None:
        most = one.draw.idle_watts
        known = "is not known" if most is None else f"is at most {most:g} W"
        span = " to ".join(
            clock_time(parse_rfc3339(moment), now=now) for moment in (one.draw.begin, one.draw.end)
        )
        yield (
            f"it drew {one.draw.watts:g} W on average from {span}; "
            f"what its model draws without work {known}"
        )
    if one.missing:
        yield f"not exported: {', '.join(missing.word for missing in one.missing)}"


def _signals(one: DeviceExplanation, *, now: Timestamp) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("  signal", "peak", "at", "counts", "work", "seen", "newest", "moved", "from"):
        table.add_column(name, no_wrap=name != "from")
    for row in one.signals:
        table.add_row(*map(_plain, _cells(row, now=now)))
    return table


def _cells(row: SignalRow, *, now: Timestamp) -> Iterator[str]:
    yield f"  {row.word}"
    # The highest value of a counter says nothing.
    peak = None if row.signal == Signal.ENERGY.value else row.peak
    yield "" if peak is None else measured(peak, row.unit)
    told = row.peak_at if peak else None
    yield "" if told is None else clock_time(parse_rfc3339(told), now=now)
    yield row.counts
    yield f"{row.active_steps} steps" if row.active_steps else "none"
    garbage = f", {row.invalid_steps} garbage" if row.invalid_steps else ""
    yield f"{row.seen_steps} of {row.steps}{garbage}"
    yield _age(row.newest_age_seconds)
    yield str(row.changes)
    jobs = f" ({', '.join(row.jobs)})" if row.jobs else ""
    yield f"{', '.join(row.metrics)}{jobs}"


def _age(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 10 * MINUTE else f"{minutes(seconds)} min"


def measured(value: float, unit: str) -> str:
    """Write a value with its unit, bytes in the units that people think in."""
    size, larger = _LARGER.get(unit, (1.0, unit))
    return f"{number(value / size)} {larger}".strip()


def number(value: float) -> str:
    """Write a value with as many digits as somebody reads."""
    if abs(value) >= _HUGE:
        return f"{value:.3e}"
    return f"{value:.3f}".rstrip("0").rstrip(".") if value % 1 else f"{value:.0f}"
