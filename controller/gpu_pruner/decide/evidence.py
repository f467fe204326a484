"""Tracks to evidence: what a whole period of series says about one device.

It answers what each signal of a device showed in a period, how well the period is covered, and
who the series said the device belonged to. It never decides what that means, and never fills a
gap. `loop.verify` folds the tracks of a measurement; `screen` gives the same from memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from msgspec import structs

from gpu_pruner.decide.facts import NOTHING, Facts, movement, read, signal_evidence
from gpu_pruner.decide.power import highest_draw
from gpu_pruner.decide.signals import LIVENESS_ORDER, PRIMARY_ORDER, SIGNALS, active_from
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import (
    DeviceEvidence,
    DeviceId,
    Period,
    SeriesLabels,
    Signal,
    SignalEvidence,
    Track,
)
from gpu_pruner.model.units import Timestamp


def fold(
    device: DeviceId, tracks: Iterable[Track], *, period: Period, rules: Rules
) -> DeviceEvidence:
    """Say what a period of tracks shows about one device.

    Several series of one signal count together: the highest value of a step is the step's value.
    The sum is never taken, because two scrapes of one GPU would make it busier than it is.

    Args:
        device: whose evidence is wanted; a slice also uses energy, power and temperature of its
            board where it has none of its own.
        tracks: of this device, and of others, which are left out. They may begin before the
            period: the step before it serves coverage, and older ones the first comparison.
        period: what is judged, at the tracks' step length.
        rules: for the threshold of the engine.

    Returns:
        Evidence with one entry per exported signal; without any, the device has no telemetry.
    """
    own: dict[Signal, list[Track]] = {}
    board: dict[Signal, list[Track]] = {}
    for track in tracks:
        if track.device == device:
            own.setdefault(track.signal, []).append(track)
        elif track.device == device.board and track.signal in LIVENESS_ORDER:
            board.setdefault(track.signal, []).append(track)
    signals: list[SignalEvidence] = []
    for signal in Signal:
        found = _fold_signal(own.get(signal, ()), period, rules=rules)
        if found is None and device.mig_instance:
            found = _fold_signal(board.get(signal, ()), period, rules=rules)
        if found is not None:
            signals.append(found)
    sightings = [
        (track.labels, max(inside))
        for group in own.values()
        for track in group
        if (inside := [step for step, _ in track.steps if period.first <= step <= period.last])
    ]
    evidence = identified(device, period, signals=tuple(signals), sightings=sightings)
    if Signal.ENERGY not in own:
        return evidence
    primary = next((own[one] for one in PRIMARY_ORDER if one in own), ())
    draw = highest_draw(own[Signal.ENERGY], primary, period=period)
    return structs.replace(evidence, draw=draw)


def measured(
    device: DeviceId, tracks: Iterable[Track], *, period: Period, at: Timestamp, rules: Rules
) -> DeviceEvidence:
    """Fold a period, and hear what was seen between its end and now.

    Coverage, freshness and movement are those of the period, because the newest step is unfinished.
    Work, garbage and loud values of the time since are added: they keep a workload too.

    Args:
        device: as for `fold`.
        tracks: as for `fold`; they reach to `period.reaching(at)`.
        period: what is judged.
        at: when the measurement was made, Unix seconds.
        rules: for the threshold of the engine.
    """
    known = tuple(tracks)
    whole, reach = fold(device, known, period=period, rules=rules), period.reaching(at)
    if reach.last == period.last:
        return whole
    since = Period(period.last + 1, reach.last, period.step_seconds)
    news = fold(device, known, period=since, rules=rules)
    added = {one.signal: one for one in news.signals}
    signals = [_with_news(one, added.pop(one.signal, None), at=at) for one in whole.signals]
    signals += [_with_news(one, one, at=at) for one in added.values() if _is_news(one)]
    signals.sort(key=lambda one: _PLACE[one.signal])
    return structs.replace(whole, signals=tuple(signals))


_PLACE = {signal: place for place, signal in enumerate(Signal)}


def _is_news(one: SignalEvidence) -> bool:
    """Whether a signal showed anything that speaks against idleness."""
    error = one.signal is Signal.XID and one.changes
    return bool(one.active_steps or one.invalid_steps or one.loud_steps or error)


def _with_news(
    one: SignalEvidence, news: SignalEvidence | None, *, at: Timestamp
) -> SignalEvidence:
    """Return what a signal showed together with what it showed since, up to a moment."""
    if news is None or not _is_news(news):
        return one
    worked, peaked = news.last_active_at, news.peak_at
    is_higher = news.peak is not None and (one.peak is None or news.peak >= one.peak)
    return replace(
        one,
        active_steps=one.active_steps + news.active_steps,
        invalid_steps=one.invalid_steps + news.invalid_steps,
        loud_steps=one.loud_steps + news.loud_steps,
        changes=one.changes + (news.changes if one.signal is Signal.XID else 0),
        last_active_at=one.last_active_at if worked is None else min(worked, at),
        peak=news.peak if is_higher else one.peak,
        peak_at=min(peaked, at) if is_higher and peaked is not None else one.peak_at,
    )


def _fold_signal(tracks: Sequence[Track], period: Period, *, rules: Rules) -> SignalEvidence | None:
    if not tracks:
        return None
    signal, base = tracks[0].signal, period.first - 1
    rule, threshold = SIGNALS[signal], active_from(signal, rules)
    facts = NOTHING
    for track in tracks:
        facts |= read(track.steps, base=base, rule=rule, active_from=threshold)
        if rule.counts_changes:
            facts |= Facts(changes=movement(track.steps, base=base, rule=rule))
    metric = min(track.metric for track in tracks)
    found = signal_evidence(signal, metric, facts.within(period, base=base), period=period)
    peak = max(
        (
            (value, step)
            for track in tracks
            for step, value in track.steps
            if period.first <= step <= period.last and rule.lowest <= value <= rule.highest
        ),
        default=None,
    )
    if found is None or peak is None:
        return found
    return replace(found, peak=peak[0], peak_at=(peak[1] + 1) * period.step_seconds)


def identified(
    device: DeviceId,
    period: Period,
    *,
    signals: tuple[SignalEvidence, ...],
    sightings: Iterable[tuple[SeriesLabels, int]],
) -> DeviceEvidence:
    """Put what was seen together with who and where the series said they were about.

    Args:
        device: whose evidence it is.
        period: what is judged.
        signals: at most one per signal, in the order of `Signal`.
        sightings: label sets with the newest step of the period in which each was seen.
    """
    newest: dict[SeriesLabels, int] = {}
    for labels, step in sightings:
        newest[labels] = max(step, newest.get(labels, step))
    ordered = sorted(newest, key=lambda labels: (newest[labels], _order(labels)))
    return DeviceEvidence(
        device=device,
        period=period,
        signals=signals,
        owners=tuple(one for one in ordered if one.exported is not None or one.native is not None),
        node=next((one.node for one in reversed(ordered) if one.node), ""),
        model=next((one.model for one in reversed(ordered) if one.model), ""),
        shared=any(one.replica for one in ordered),
    )


def _order(labels: SeriesLabels) -> tuple[str, ...]:
    """Return a key that puts label sets of the same age in the same order every time."""
    return (
        str(labels.exported),
        str(labels.native),
        labels.pod_uid,
        labels.node,
        labels.replica,
        labels.model,
        labels.mig_profile,
        labels.job,
    )
