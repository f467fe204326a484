"""What a generated history says of one device, read from its text and by nothing of the product."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

STEP = 60.0
_LINE = re.compile(r"^(?P<metric>\w+)\{(?P<labels>.*)\} (?P<value>\S+) (?P<at>\S+)$")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class Sample:
    """One line of OpenMetrics text."""

    metric: str
    labels: dict[str, str]
    value: float
    at: float
    """Unix seconds."""


def parsed(line: str) -> Sample | None:
    """Read a line; None for comments."""
    found = _LINE.match(line)
    if found is None:
        return None
    labels = dict(_LABEL.findall(found["labels"]))
    return Sample(found["metric"], labels, float(found["value"]), float(found["at"]))


def without(text: str, unwanted: Callable[[Sample], bool]) -> str:
    """Return the text without the samples that are unwanted."""
    kept = []
    for line in text.splitlines(keepends=True):
        sample = parsed(line)
        if sample is None or not unwanted(sample):
            kept.append(line)
    return "".join(kept)


def step_of(at: float) -> int:
    """Return the step that a moment lies in: step n covers (n, n + 1] minutes."""
    return math.ceil(at / STEP) - 1


@dataclass(frozen=True)
class Truth:
    """What was written of one metric of one device within a stretch of whole steps."""

    peak: float
    """Highest value, as exported."""
    peak_at: float
    """End of the newest step with that value."""
    seen: int
    """Steps with a sample in them or in the one before."""
    moved: int
    """Steps whose highest value is another than that of the last step with one in the stretch."""


def truth(
    samples: Iterable[Sample],
    metric: str,
    uuid: str,
    *,
    begin: float,
    end: float,
    mig_instance: str = "",
) -> Truth:
    """Read what was written of a metric of a device from one moment to another."""
    first, last = step_of(begin + 1), step_of(end)
    peaks: dict[int, float] = {}
    for one in samples:
        mine = one.labels.get("UUID") == uuid and one.labels.get("GPU_I_ID", "") == mig_instance
        if one.metric == metric and mine:
            step = step_of(one.at)
            peaks[step] = max(one.value, peaks.get(step, -math.inf))
    inside = {step: value for step, value in peaks.items() if first <= step <= last}
    peak = max(inside.values())
    newest = max(step for step, value in inside.items() if value == peak)
    seen = sum(step in peaks or step - 1 in peaks for step in range(first, last + 1))
    ordered = [inside[step] for step in sorted(inside)]
    moved = sum(before != after for before, after in pairwise(ordered))
    return Truth(peak, (newest + 1) * STEP, seen, moved)
