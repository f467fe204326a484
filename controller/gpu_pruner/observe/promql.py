"""The PromQL that we send, and how a large question is cut into smaller ones. Pure.

Screen and verify ask for the peak per whole step of every series, by range query; of liveness a
screen asks only whether the value moved.
Step n covers (n x step, (n+1) x step] and is evaluated at its end. Prometheus 2.x ranges are closed
on both sides, so a sample on a boundary shows in two steps; that errs towards activity.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from gpu_pruner.model.signals import Period
from gpu_pruner.observe import labels
from gpu_pruner.observe.profiles import Field

MATCH_BATCH = 200
"""UUIDs in one matcher. A literal alternation is an index look-up; 200 of them are about 8 kB."""

POINTS_PER_ANSWER = 1_000_000
"""Points that we plan one answer for: about 25 MB of JSON."""

MOST_STEPS = 10_000
"""Steps in one question; Prometheus refuses more than 11,000 points per series."""

FEWEST_STEPS = 3
"""A slice this short is no longer cut in time but by device."""

ASKED = "asked"
FLAWED = "!"
"""What `everything` marks its rows with."""

_HEX = "0123456789abcdef"
_NOT_HEX = "other"


@dataclass(frozen=True, slots=True)
class Scope:
    """What every question to one server is limited to, and what its series are told apart by."""

    matcher: str = ""
    """For example ``cluster="east"``; empty where the server holds one cluster."""
    node_label: str = ""

    @property
    def by(self) -> str:
        """Return the labels that series are told apart by."""
        return ", ".join(dict.fromkeys((*labels.IDENTITY, *filter(None, (self.node_label,)))))

    def selector(self, metric: str, *matchers: str) -> str:
        """Return the selector of a metric's series in this scope."""
        return f"{metric}{{{','.join(filter(None, (*matchers, self.matcher)))}}}"


def peaks(field: Field, part: Slice, scope: Scope) -> str:
    """Return the query for the highest value of each series in each step.

    Where every value of a label is an event of its own (Xid codes), their sum is asked for, in
    which a new event shows as a change.
    """
    highest = " or ".join(f"max_over_time({one})" for one in _series(field, part, scope))
    if field.events:
        return f"sum by ({scope.by}) (max by ({scope.by}, {field.events}) ({highest}))"
    return f"max by ({scope.by}) ({highest})"


def work(field: Field, part: Slice, scope: Scope) -> str:
    """Return the query for those peaks only that may be work: silence is left out."""
    return f"{peaks(field, part, scope)} > {field.floor:g}"


def moves(field: Field, part: Slice, scope: Scope) -> str:
    """Return the query for 1 where a device's value is another than a step before, else 0.

    It touches two samples per step, and its answers are all alike. Two series of a device count as
    one, the higher; what is gone shows for five minutes more, without movement.
    """
    return _moves(", ".join(labels.DEVICE), field, part, scope)


def named_moves(field: Field, part: Slice, scope: Scope) -> str:
    """Return the query of `moves` with all labels that series are told apart by."""
    return _moves(scope.by, field, part, scope)


def _moves(by: str, field: Field, part: Slice, scope: Scope) -> str:
    step = int(part.period.step_seconds)
    series = [scope.selector(field.metric, part.matcher(uuid)) for uuid in field.uuids]
    now, before = " or ".join(series), " or ".join(f"{one} offset {step}s" for one in series)
    return f"max by ({by}) ({now}) != bool max by ({by}) ({before})"


def bare_peaks(field: Field, part: Slice, scope: Scope) -> str:
    """Return the query of `peaks` with every series by itself.

    Series that mean the same are then merged here instead of there. Over half a day that costs
    the server a sixth: it groups by thirty labels in every step anew.
    """
    return " or ".join(f"max_over_time({one})" for one in _series(field, part, scope))


def bare_work(field: Field, part: Slice, scope: Scope) -> str:
    """Return the query for those bare peaks only that may be work."""
    return f"({bare_peaks(field, part, scope)}) > {field.floor:g}"


def bare_moves(field: Field, part: Slice, scope: Scope) -> str:
    """Return the query of `moves` with every series compared with itself only.

    A series that is new in a step has nothing to be compared with: it counts as still.
    """
    step = int(part.period.step_seconds)
    series = [scope.selector(field.metric, part.matcher(uuid)) for uuid in field.uuids]
    return " or ".join(f"({one} != bool {one} offset {step}s)" for one in series)


def flaws(field: Field, part: Slice, scope: Scope) -> str:
    """Return the query for values that a peak hides: not-a-number, and below zero.

    ``max_over_time`` and ``max by`` both prefer any number to not-a-number, but a sum with it is
    never equal to itself.
    """
    found = " or ".join(
        f"(sum_over_time({one}) != sum_over_time({one})) or (min_over_time({one}) < 0)"
        for one in _series(field, part, scope)
    )
    return f"min by ({scope.by}) ({found})"


def everything(fields: Iterable[Field], part: Slice, scope: Scope) -> str:
    """Return the one query for peaks and flaws of several fields; `ASKED` says which a row is of.

    Its value is the metric's name, behind `FLAWED` for flaws.
    """
    rows = {one.metric: peaks(one, part, scope) for one in fields}
    rows |= {f"{FLAWED}{one.metric}": flaws(one, part, scope) for one in fields}
    return " or ".join(
        f'label_replace({query}, "{ASKED}", "{name}", "", "")' for name, query in rows.items()
    )


def names(fields: Iterable[Field], part: Slice, scope: Scope) -> str:
    """Return the query for which of these fields' metrics some devices have."""
    by_label: dict[str, list[str]] = {}
    for field in fields:
        for uuid in field.uuids:
            by_label.setdefault(uuid, []).append(field.metric)
    return "group by (__name__) ({})".format(
        " or ".join(
            scope.selector("", f'__name__=~"{"|".join(metrics)}"', part.matcher(uuid))
            for uuid, metrics in by_label.items()
        )
    )


def _series(field: Field, part: Slice, scope: Scope) -> Iterator[str]:
    """Return one range selector for each label that may hold the device."""
    step = int(part.period.step_seconds)
    for uuid in field.uuids:
        yield f"{scope.selector(field.metric, part.matcher(uuid))}[{step}s]"


def quoted(text: str) -> str:
    """Return a text as it stands between the quotes of a PromQL string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def literal(text: str) -> str:
    r"""Return a regular expression, quoted for PromQL, that matches exactly this text.

    Args:
        text: for example a UUID; it came from a metric and may hold anything.

    Returns:
        For example ``GPU-a.b`` becomes ``GPU-a\\.b``.
    """
    # Only ASCII may be escaped: RE2 refuses a backslash before anything else.
    plain = "".join(
        f"\\{c}" if c.isascii() and not (c.isalnum() or c in "-_") else c
        for c in text
        if c.isprintable()
    )
    return plain.replace("\\", "\\\\").replace('"', '\\"')


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a question that is answered by one reply: some steps of some devices."""

    period: Period
    uuids: tuple[str, ...] | None = None
    """Only these devices; None means all."""
    shard: str = ""
    """With all devices: only UUIDs whose first digit is this one; empty means no limit."""

    def matcher(self, uuid: str) -> str:
        """Return the label matcher of this slice's devices, whose UUIDs are in this label."""
        if self.uuids is not None:
            return f'{uuid}=~"{"|".join(literal(one) for one in self.uuids)}"'
        if self.shard == _NOT_HEX:
            return f'{uuid}!="",{uuid}!~"GPU-[{_HEX}].*"'
        if self.shard:
            return f'{uuid}=~"GPU-{self.shard}.*"'
        return f'{uuid}!=""'

    def split(self) -> tuple[Slice, ...]:
        """Return smaller slices that cover the same; empty where it cannot be made smaller.

        Time is halved first. When little of it is left, the devices are divided: UUIDs are random
        hexadecimal digits, so their first one divides evenly.
        """
        if self.period.steps > FEWEST_STEPS:
            middle = (self.period.first + self.period.last) // 2
            return (
                replace(self, period=replace(self.period, last=middle)),
                replace(self, period=replace(self.period, first=middle + 1)),
            )
        if self.uuids is not None and len(self.uuids) > 1:
            half = len(self.uuids) // 2
            return replace(self, uuids=self.uuids[:half]), replace(self, uuids=self.uuids[half:])
        if self.uuids is None and not self.shard:
            return tuple(replace(self, shard=shard) for shard in (*_HEX, _NOT_HEX))
        return ()


def slices_for_all(period: Period, devices: int) -> Iterator[Slice]:
    """Cut a question about all devices so that no answer is unbounded.

    Args:
        period: whole steps.
        devices: about how many series one field has; the answer's size grows with it.
    """
    length = min(MOST_STEPS, max(FEWEST_STEPS, POINTS_PER_ANSWER // max(1, devices)))
    for first in range(period.first, period.last + 1, length):
        last = min(period.last, first + length - 1)
        yield Slice(replace(period, first=first, last=last))


def slices_for(uuids: tuple[str, ...], period: Period) -> Iterator[Slice]:
    """Cut a question about some devices into batches of at most `MATCH_BATCH`."""
    for start in range(0, len(uuids), MATCH_BATCH):
        batch = uuids[start : start + MATCH_BATCH]
        for whole in slices_for_all(period, len(batch)):
            yield replace(whole, uuids=batch)
