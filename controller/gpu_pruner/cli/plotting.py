"""The measured window as a picture: one strip per signal of a device, step by step.

Answers what the numbers of an explanation look like over time: values with their holes, steps that
count as work, values that are garbage, and the line from which on a value counts. It draws what
`decide.showing` returns and judges nothing. matplotlib draws it, an extra, because nothing but a
picture needs it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_pruner.decide.showing import UNITS, Line, lines
from gpu_pruner.decide.signals import ANYTHING, SIGNALS
from gpu_pruner.decide.wording import clock_time
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.model.plan import DeviceFinding
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import Period, Signal, Track
from gpu_pruner.model.units import HOUR, Timestamp
from gpu_pruner.model.verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg")
_MOST_DEVICES = 4
"""Devices of one workload that are drawn, those first that made the verdict what it is."""
_WIDTH, _STRIP, _HEADING = 8.0, 0.62, 0.55
"""Inches, at 100 pixels each: 800 pixels wide."""
_QUIET, _WORK, _GARBAGE, _HOLE, _LIMIT = "#1f5a96", "#d1580a", "#b0002a", "#e3e3e3", "#8a8a8a"
_UNSEEN = frozenset({Signal.XID, Signal.MEMORY})
"""Signals whose values say nothing of work or life."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One workload to draw."""

    title: str
    sentence: str
    findings: tuple[DeviceFinding, ...]
    tracks: tuple[Track, ...]


@dataclass(frozen=True, slots=True)
class _Strip:
    """One signal of one device, with what stands above it."""

    line: Line
    period: Period
    heading: str
    """Empty for all but a device's first strip."""


def drawable(path: Path) -> None:
    """Check that a picture can be drawn into a file, before anything is asked or measured.

    Raises:
        ConfigurationError: another format, no such folder, or matplotlib is not installed.
    """
    if path.suffix.lower() not in FORMATS:
        raise ConfigurationError(f"{path} must end in {' or '.join(FORMATS)}", path="--plot")
    if not path.parent.is_dir():
        raise ConfigurationError(f"there is no folder {path.parent}", path="--plot")
    if importlib.util.find_spec("matplotlib") is None:
        what = "pictures need matplotlib; install it with: pip install 'gpu-pruner[plot]'"
        raise ConfigurationError(what, path="--plot")


def save(pictures: Sequence[Picture], path: Path, *, rules: Rules) -> None:
    """Draw workloads below one another.

    Args:
        pictures: at least one.
        path: ends in one of `FORMATS`.
        rules: for the values from which on a step counts.
    """
    import matplotlib as mpl  # noqa: PLC0415 - slow to import, and not always there
    from matplotlib.figure import Figure  # noqa: PLC0415 - as above

    strips = [(one, tuple(_strips(one, rules))) for one in pictures]
    count = max(1, sum(len(several) for _, several in strips))
    height = (
        _STRIP * count
        + _HEADING * (1 + len(strips))
        + 0.3 * sum(bool(strip.heading) for _, several in strips for strip in several)
    )
    # Words stay words in an SVG, and the same look gives the same bytes.
    kind = path.suffix.lower()[1:]
    svg: dict[str, str | None] = {"Creator": "gpu-pruner", "Date": None}
    metadata = svg if kind == "svg" else {"Software": "gpu-pruner"}
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "gpu-pruner"}):
        figure = Figure(figsize=(_WIDTH, height), dpi=100, facecolor="white", layout="constrained")
        _fill(figure, strips)
        figure.savefig(path, format=kind, metadata=metadata)


def _strips(picture: Picture, rules: Rules) -> Iterator[_Strip]:
    """Yield what is drawn of a workload: the devices that tell most."""
    weight = (Verdict.ACTIVE, Verdict.UNKNOWN, Verdict.IDLE)
    telling = sorted(picture.findings, key=lambda one: weight.index(one.verdict))
    for finding in telling[:_MOST_DEVICES]:
        evidence = finding.evidence
        own = lines(evidence.device, picture.tracks, period=evidence.period, rules=rules)
        heading = f"{evidence.device}: {finding.verdict.value}, {finding.detail}"
        for line in own:
            if line.signal not in _UNSEEN:
                yield _Strip(line, evidence.period, heading)
                heading = ""


def _fill(figure: Figure, pictures: Sequence[tuple[Picture, tuple[_Strip, ...]]]) -> None:
    told = [f"{one.title}\n{_folded(one.sentence)}" for one, _ in pictures]
    # What people wrote is no formula.
    figure.suptitle("\n".join(told), x=0.01, ha="left", fontsize=9, parse_math=False)
    strips = [strip for _, several in pictures for strip in several]
    if not strips:
        figure.text(0.5, 0.4, "Nothing was measured.", ha="center", fontsize=10)
        return
    for place, strip in enumerate(strips, start=1):
        axes = figure.add_subplot(len(strips), 1, place)
        _draw(axes, strip)
        if place < len(strips):
            axes.tick_params(labelbottom=False)
        else:
            axes.set_xlabel(_LEGEND, fontsize=7)


_LEGEND = (
    "UTC. Orange: counts as work. Dashed: from here on it counts. Grey: no sample. "
    "Red: not a possible value."
)
_TICKS = (300.0, 600.0, 900.0, 1800.0)
_MOST_TICKS = 8
"""Seconds between two marks of the time axis, and how many fit on it."""

_FOLD, _NARROW_FOLD = 118, 84
"""Characters of the title that fit into the width, and of a device's heading, which is bold."""


def _folded(text: str, width: int = _FOLD) -> str:
    told = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)
    words, rows = told.split(), [""]
    for word in words:
        if len(rows[-1]) + len(word) >= width:
            rows.append("")
        rows[-1] = f"{rows[-1]} {word}".strip()
    return "\n".join(rows)


def _draw(axes: Axes, strip: _Strip) -> None:
    line, period = strip.line, strip.period
    points = _watts(line) if line.signal is Signal.ENERGY else line.points
    _spans(axes, [at for at, value in line.points if value is None], period)
    for part in _unbroken(points):
        begin = (part[0][0] - period.step_seconds, part[0][1])
        steps = [begin, *part]  # a value is that of its whole step
        axes.plot([at for at, _ in steps], [value for _, value in steps], color=_QUIET,
                  linewidth=1.3, drawstyle="steps-pre")  # fmt: skip
    limit = _limit(line)
    if line.counts_from is not None:
        least, back = line.counts_from, period.step_seconds / 2
        work = [(at - back, one) for at, one in points if one is not None and one >= least]
        axes.plot([at for at, _ in work], [one for _, one in work], linestyle="",
                  marker="o", markersize=3, color=_WORK)  # fmt: skip
    if limit:
        axes.axhline(limit, color=_LIMIT, linewidth=0.8, linestyle=(0, (4, 3)))
        axes.text(period.end, limit, f" {limit:g}", color=_LIMIT, fontsize=7, va="center")
    for at in line.garbage:
        axes.axvline(at, color=_GARBAGE, linewidth=1.2)
    _label(axes, strip, [value for _, value in points if value is not None])


def _label(axes: Axes, strip: _Strip, values: Sequence[float]) -> None:
    from matplotlib.ticker import FuncFormatter, MultipleLocator  # noqa: PLC0415 - as in `save`

    signal, period = strip.line.signal, strip.period
    unit = "W, by energy" if signal is Signal.ENERGY else UNITS[signal]
    word = SIGNALS[signal].word
    axes.set_ylabel(f"{word}\n{unit}", rotation=0, ha="right", va="center", fontsize=8)
    axes.set_xlim(period.start, period.end)
    top = max(values, default=0.0)
    roof = max(top, 1.5 * _limit(strip.line)) or 1.0
    axes.set_ylim(bottom=-0.08 * roof, top=1.15 * roof)
    axes.set_yticks([0.0, top] if top > 0 else [0.0])
    axes.set_yticklabels(["0", f"{top:.3g}"] if top > 0 else ["0"])
    axes.tick_params(labelsize=7)
    every = next((one for one in _TICKS if period.end - period.start <= _MOST_TICKS * one), HOUR)
    axes.xaxis.set_major_locator(MultipleLocator(every))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda at, _: clock_time(at, now=at)[:5]))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if strip.heading:
        axes.set_title(
            _folded(strip.heading, _NARROW_FOLD), loc="left", fontsize=8, fontweight="bold"
        )


def _limit(line: Line) -> float:
    """Return the value from which on a step counts; 0 where none does, or anything above 0."""
    least = line.counts_from
    return 0.0 if least is None or least == ANYTHING else least


def _watts(line: Line) -> tuple[tuple[Timestamp, float | None], ...]:
    """Return a counter's mean power from one step to the next; a counter that fell is a hole."""
    found: list[tuple[Timestamp, float | None]] = []
    for (begin, before), (end, after) in pairwise(line.points):
        if before is None or after is None or after < before:
            found.append((end, None))
        else:
            found.append((end, (after - before) / (end - begin)))
    return tuple(found)


def _unbroken(
    points: Sequence[tuple[Timestamp, float | None]],
) -> Iterator[list[tuple[Timestamp, float]]]:
    """Yield stretches without a hole."""
    part: list[tuple[Timestamp, float]] = []
    for at, value in points:
        if value is not None and isfinite(value):
            part.append((at, value))
        elif part:
            yield part
            part = []
    if part:
        yield part


def _spans(axes: Axes, holes: Sequence[Timestamp], period: Period) -> None:
    for at in holes:
        axes.axvspan(at - period.step_seconds, at, color=_HOLE, linewidth=0)
