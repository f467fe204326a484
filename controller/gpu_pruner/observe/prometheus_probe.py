"""What telemetry there is: which metrics, which label scheme, how often. Pure.

Builds the probe's questions and reads their answers; `observe.prometheus` asks them at start and
every ten minutes. The probe chooses what the screen asks for; `prometheus_notes` tells the operator
in words what was found. It never chooses owners: both label triples go to `resolve`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from statistics import median

import msgspec

from gpu_pruner.model.signals import Signal
from gpu_pruner.model.units import MINUTE, Seconds
from gpu_pruner.observe import labels
from gpu_pruner.observe.profiles import (
    LIVENESS_ORDER,
    PRIMARY_ORDER,
    PROFILES,
    Field,
    Use,
    unknown_names,
)
from gpu_pruner.observe.prometheus_replies import Series, points
from gpu_pruner.observe.promql import Scope, literal
from gpu_pruner.settings.schema import ProfileName

PROBE_EVERY: Seconds = 10 * MINUTE
DEFAULT_INTERVAL: Seconds = 30.0
"""Assumed scrape interval while fewer than two samples of a series are there to tell it."""

STEP_GRAIN: Seconds = 30.0
"""Steps longer than a minute are whole multiples of this, so that jitter does not renumber them."""

INTERVAL_TOLERANCE = 0.1
"""A new estimate of the scrape interval counts only if it differs by more than this ratio."""

_SAMPLED_DEVICES = 5
_MODE = "mode"
_HINTED_NAMES = 5
EXPORTERS = ".*dcgm-exporter.*"
"""Pods that are not workloads whatever the label scheme."""


class _Labels(msgspec.Struct, gc=False):
    mode: str = ""
    metric: str = msgspec.field(name="__name__", default="")


_LABELS = msgspec.json.Decoder(_Labels)
_ALL_LABELS = msgspec.json.Decoder(dict[str, str])


class Ask(Enum):
    """What a screen wants to know of a field."""

    PEAKS = "peaks"
    """Every peak, so that silence is seen."""
    WORK = "work"
    """Peaks above noise."""
    MOVES = "moves"
    """Whether the value moves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The metric names that a server has, as far as they are of our profiles."""

    known: tuple[Field, ...]
    """Fields of which there is at least one series, in the order of the table."""
    unknown: Mapping[str, int]
    """Names that look like GPU metrics, are in no table of ours, and how many series they have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What was found. Counts are numbers of devices or series at the time of asking."""

    fields: tuple[Field, ...]
    """Those that somebody exports."""
    devices: Mapping[str, int]
    """By metric name; metrics that name no device are absent."""
    unknown: Mapping[str, int] = field(default_factory=dict)
    """See `Names`."""
    exported: int = 0
    """Series with a pod in ``exported_pod``."""
    native: int = 0
    """Series with a pod in ``pod`` only, in jobs where no series has ``exported_pod``."""
    weaker: Mapping[Signal, int] = field(default_factory=dict)
    """By primary or liveness signal: devices that export it and nothing better of its kind."""
    speechless: int = 0
    """Devices that export liveness, but no primary signal; only these labels tell who has them."""
    rescaled: int = 0
    """Devices whose utilisation is not at the scale that its name says."""
    nameless: int = 0
    """Series without the device's UUID; they are left out."""
    clusters: int = 1
    """Values of the cluster label."""
    duplicates: int = 1
    """Most series that say the same of one device: 2 for an HA pair or a double scrape."""
    sample: tuple[tuple[str, str], ...] = ()
    """A few devices, as label and UUID, to measure the scrape interval on."""

    @property
    def series(self) -> int:
        """Return about how many series the largest answer will have."""
        return max(self.devices.values(), default=0) * max(1, self.duplicates)

    @property
    def screened(self) -> tuple[tuple[Field, Ask], ...]:
        """Return the fields that a screen asks for, each with what it asks.

        Silence matters of the best primary signal of every device, and movement of liveness. Of
        everything else a screen needs the work only, which is a small answer.
        """
        present = [one for one in self.fields if one.metric in self.devices]
        chosen: list[tuple[Field, Ask]] = []
        for one in present:
            if one.use is Use.PRIMARY:
                whole = one.signal is Signal.ENGINE or bool(self.weaker.get(one.signal))
                chosen.append((one, Ask.PEAKS if whole else Ask.WORK))
        chosen += [(one, Ask.WORK) for one in present if one.use is Use.ACTIVITY]
        covered = 0
        for signal in LIVENESS_ORDER:
            fields = [one for one in present if one.signal is signal]
            count = sum(self.devices[one.metric] for one in fields)
            if count > covered or self.weaker.get(signal):
                chosen += [(one, Ask.MOVES) for one in fields]
                covered = max(covered, count)
        return tuple(chosen)


def names_query(profiles: Iterable[ProfileName], scope: Scope) -> str:
    """Return the query for all metric names that may concern us, with their series."""
    patterns = [PROFILES[one].names for one in profiles if PROFILES[one].names]
    patterns += [
        field.metric
        for one in profiles
        if not PROFILES[one].names
        for field in PROFILES[one].fields
    ]
    return f"count by (__name__) ({scope.selector('', f'__name__=~{_quoted(patterns)}')})"


def read_names(
    rows: Iterable[Series], fields: tuple[Field, ...], profiles: Iterable[ProfileName]
) -> Names:
    """Read the answer to `names_query`.

    Args:
        rows: instant values.
        fields: those that we would read.
        profiles: that they are of.
    """
    counts = {
        _LABELS.decode(row.metric).metric: int(float(row.value[1]))
        for row in rows
        if row.value is not None
    }
    return Names(
        known=tuple(one for one in fields if one.metric in counts),
        unknown={name: counts[name] for name in sorted(unknown_names(counts, profiles))},
    )


def probe_query(fields: tuple[Field, ...], scope: Scope, *, cluster_label: str) -> str:
    """Return the one query whose rows carry, as label ``mode``, what they count.

    Args:
        fields: those that somebody exports; the fewer, the cheaper.
        scope: of this server.
        cluster_label: label that tells clusters apart.
    """
    device = ", ".join((*labels.UUIDS, labels.MIG_INSTANCE, labels.DRA_INSTANCE))
    rows = {one.metric: f"count(count by ({device}) ({_named([one], scope)}))" for one in fields}
    primary = [one for one in fields if one.use is Use.PRIMARY]
    if primary:
        rows |= _primary_rows(primary, scope, device=device, cluster_label=cluster_label)
        rows |= _weaker_rows(primary, scope, PRIMARY_ORDER, device=device)
    lively = [one for one in fields if one.use is Use.LIVENESS]
    if lively:
        without = f" unless count by ({device}) ({_named(primary, scope)})" if primary else ""
        named = _named(lively, scope)
        rows["speechless"] = f"count(count by ({device}) ({named}){without})"
        rows |= _weaker_rows(lively, scope, LIVENESS_ORDER, device=device)
    return " or ".join(
        f'label_replace({query}, "{_MODE}", "{mode}", "", "")' for mode, query in rows.items()
    )


def _primary_rows(
    primary: list[Field], scope: Scope, *, device: str, cluster_label: str
) -> dict[str, str]:
    everything = _named(primary, scope)
    exported = _named(primary, scope, f'{labels.EXPORTED_POD}!=""')
    # Per job: where any series has exported_pod, a pod alone is the exporter's own.
    native = _named(
        primary, scope, f'{labels.POD}!=""', f'{labels.EXPORTED_POD}=""',
        f'{labels.POD}!~"{EXPORTERS}"',
    )  # fmt: skip
    owner = f"{device}, {labels.POD}, {labels.EXPORTED_POD}"
    empty = [f'{one}=""' for one in labels.UUIDS]
    nameless = " or ".join(scope.selector(one.metric, *empty) for one in primary)
    rows = {
        "exported": f"count({exported})",
        "native": f"count(({native}) unless on ({labels.JOB}) ({exported}))",
        "duplicates": f"max(count by ({owner}) ({everything}))",
        "sample": f"topk({_SAMPLED_DEVICES}, count by ({', '.join(labels.UUIDS)}) ({everything}))",
        "nameless": f"count({nameless})",
        "clusters": f"count(count by ({cluster_label}) ({everything}))",
    }
    doubted = [
        f"{one} % 1 != 0" if field.whole else f"{one} > {field.ambiguous_above:g}"
        for field in primary
        if not field.single_scale
        for one in _selectors(field, scope)
    ]
    if doubted:
        together = " or ".join(f"({one})" for one in doubted)
        rows["rescaled"] = f"count(count by ({device}) ({together}))"
    return rows


def _weaker_rows(
    fields: list[Field], scope: Scope, order: tuple[Signal, ...], *, device: str
) -> dict[str, str]:
    """Count, for each signal of one kind, the devices that have nothing better."""
    rows: dict[str, str] = {}
    for place, signal in enumerate(order):
        own = [one for one in fields if one.signal is signal]
        better = [one for one in fields if one.signal in order[:place]]
        if own and better:
            rows[f"weaker_{signal}"] = (
                f"count(count by ({device}) ({_named(own, scope)}) unless "
                f"count by ({device}) ({_named(better, scope)}))"
            )
        elif own:
            rows[f"weaker_{signal}"] = f"count(count by ({device}) ({_named(own, scope)}))"
    return rows


def read_probe(rows: Iterable[Series], names: Names) -> Probe:
    """Read the answer to `probe_query`.

    Args:
        rows: instant values; a mode without a row counted nothing.
        names: that the query was made for.
    """
    counts: dict[str, int] = {}
    sample: list[tuple[str, str]] = []
    for row in rows:
        told = _LABELS.decode(row.metric)
        if told.mode == "sample":
            found = _ALL_LABELS.decode(row.metric)
            sample += [(label, found[label]) for label in labels.UUIDS if found.get(label)]
        elif row.value is not None:
            counts[told.mode] = int(float(row.value[1]))
    return Probe(
        fields=names.known,
        devices={one.metric: counts[one.metric] for one in names.known if one.metric in counts},
        unknown=names.unknown,
        exported=counts.get("exported", 0),
        native=counts.get("native", 0),
        weaker={
            signal: counts[mode]
            for signal in (*PRIMARY_ORDER, *LIVENESS_ORDER)
            if (mode := f"weaker_{signal}") in counts
        },
        speechless=counts.get("speechless", 0),
        rescaled=counts.get("rescaled", 0),
        nameless=counts.get("nameless", 0),
        clusters=counts.get("clusters", 1),
        duplicates=counts.get("duplicates", 1),
        sample=tuple(sorted(sample)),
    )


def samples_query(probe: Probe, scope: Scope) -> str:
    """Return the query for the raw samples of the probe's few devices, newest ten minutes."""
    label = probe.sample[0][0]
    uuids = "|".join(literal(uuid) for known, uuid in probe.sample if known == label)
    metrics = [one.metric for one in probe.fields if one.use is Use.PRIMARY]
    return scope.selector("", f"__name__=~{_quoted(metrics)}", f'{label}=~"{uuids}"') + "[10m]"


def scrape_interval(series: Iterable[Series]) -> Seconds | None:
    """Return the usual time between two samples of one series.

    Args:
        series: raw samples, as `samples_query` asks for.

    Returns:
        Whole seconds, at least 1; None where no series has two samples.
    """
    gaps = [
        later[0] - earlier[0] for one in series for earlier, later in pairwise(points(one.values))
    ]
    return max(1.0, float(round(median(gaps)))) if gaps else None


def step_seconds(interval: Seconds) -> Seconds:
    """Return the length of a step: a minute, or the scrape interval if that is longer.

    Args:
        interval: time between two samples of a series.

    Returns:
        60, or the interval rounded up to a multiple of `STEP_GRAIN`.
    """
    if interval <= MINUTE * (1 + INTERVAL_TOLERANCE):
        return MINUTE
    return math.ceil(interval / STEP_GRAIN) * STEP_GRAIN


def hint_query() -> str:
    """Return the query for GPU metric names that we do not know; asked only if none is known."""
    names = "(DCGM|dcgm|nvidia_smi|nvidia_gpu|amd|gpu)_.+"
    return f'topk({_HINTED_NAMES}, count by (__name__) ({{__name__=~"{names}"}}))'


def read_hint(rows: Iterable[Series]) -> tuple[str, ...]:
    """Return the metric names of an answer to `hint_query`, sorted."""
    return tuple(sorted(_LABELS.decode(row.metric).metric for row in rows))


def _named(fields: Iterable[Field], scope: Scope, *matchers: str) -> str:
    """Return the series of these fields that name a device; of several the first counts."""
    return " or ".join(one for field in fields for one in _selectors(field, scope, *matchers))


def _selectors(field: Field, scope: Scope, *matchers: str) -> list[str]:
    return [scope.selector(field.metric, f'{uuid}!=""', *matchers) for uuid in field.uuids]


def _quoted(patterns: Iterable[str]) -> str:
    return f'"{"|".join(patterns)}"'
