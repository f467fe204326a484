"""A backtest as rows: what `gpu-pruner backtest` prints, as a table and as JSON alike. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from gpu_pruner.decide.grid import REGRET_SHARE, Outcome, Past, Tally, recommended
from gpu_pruner.decide.pauses import REGRET_SECONDS
from gpu_pruner.model.signals import PodName
from gpu_pruner.model.units import HOUR, MINUTE, Seconds, rfc3339
from gpu_pruner.settings.durations import format_duration


class TallyRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a setting would have done, in all or in one namespace."""

    gpu_hours_returned: float
    pauses: int
    workloads_paused: int
    regrets: int
    """Pauses with work within an hour after them."""
    open_pauses: int
    """Pauses so near the end of the history that nobody can say whether they were regretted."""


class NamespaceRow(TallyRow, frozen=True, kw_only=True):
    """The same for one namespace."""

    namespace: str


class SettingOutcome(TallyRow, frozen=True, kw_only=True):
    """One setting, with what it would have done in all."""

    window_seconds: Seconds
    idle_threshold: float
    notice_seconds: Seconds
    recommended: bool
    namespaces: tuple[NamespaceRow, ...]

    @property
    def name(self) -> str:
        """Return the setting in a few characters."""
        window, notice = format_duration(self.window_seconds), format_duration(self.notice_seconds)
        return f"{window} {self.idle_threshold:g} {notice}"


class Backtest(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer."""

    begin: str
    end: str
    gpus: int
    """Devices that somebody held, at any time."""
    workloads: int
    gpu_hours_held: float
    gpu_hours_seen: float
    """Of those, the ones in which a primary signal was there to judge by."""
    grouped_by: str
    """``kube-state-metrics``, ``pod``, or ``kube-state-metrics and pod`` where some are unknown."""
    settings: tuple[SettingOutcome, ...]
    recommendation: str
    remarks: tuple[str, ...]


def backtest(
    past: Past,
    found: Sequence[Outcome],
    *,
    pods: int,
    roots: Mapping[PodName, str],
    notes: tuple[str, ...],
) -> Backtest:
    """Return a replayed history as rows.

    Args:
        past: the history.
        found: all settings.
        pods: number of pods that held a device.
        roots: of pods, as far as known.
        notes: of the source.
    """
    best = recommended(one.total for one in found)
    period, width = past.period, past.period.step_seconds
    holdings = [one for workload in past.workloads for one in workload.holdings]
    seen = {one.device: one.seen_primary() for one in past.devices}
    held = sum(one.end - one.first for one in holdings)
    judged = sum((seen[one.device] & one.mask).bit_count() for one in holdings)
    return Backtest(
        begin=rfc3339(period.start),
        end=rfc3339(period.end),
        gpus=len({one.device for one in holdings}),
        workloads=len(past.workloads),
        gpu_hours_held=_hours(held * width / HOUR),
        gpu_hours_seen=_hours(judged * width / HOUR),
        grouped_by=_grouped(pods, len(roots)),
        settings=tuple(_setting(one, best=n == best) for n, one in enumerate(found)),
        recommendation=_recommendation(found, best),
        remarks=(*_remarks(found, held=held, judged=judged, pods=pods - len(roots)), *notes),
    )


def _grouped(pods: int, known: int) -> str:
    if not known:
        return "pod"
    return "kube-state-metrics" if known >= pods else "kube-state-metrics and pod"


def _hours(hours: float) -> float:
    return round(hours, 3)


def _tally(one: Tally) -> TallyRow:
    return TallyRow(
        gpu_hours_returned=_hours(one.gpu_hours),
        pauses=one.pauses,
        workloads_paused=one.workloads,
        regrets=one.regrets,
        open_pauses=one.still_open,
    )


def _setting(one: Outcome, *, best: bool) -> SettingOutcome:
    rules = one.rules
    return SettingOutcome(
        window_seconds=rules.window_seconds,
        idle_threshold=rules.idle_threshold,
        notice_seconds=rules.notice_seconds,
        recommended=best,
        namespaces=tuple(
            NamespaceRow(namespace=name, **msgspec.structs.asdict(_tally(told)))
            for name, told in one.namespaces.items()
        ),
        **msgspec.structs.asdict(_tally(one.total)),
    )


def _recommendation(found: Sequence[Outcome], best: int | None) -> str:
    if best is None:
        return "Nothing would have been paused by any of these settings"
    name, told = _setting(found[best], best=True).name, found[best].total
    share = f"{told.regrets} of {told.pauses} pauses regretted"
    if told.regrets <= REGRET_SHARE * told.pauses:
        return (
            f"{name}: most GPU hours returned ({told.gpu_hours:.1f}) among the settings with at "
            f"most {REGRET_SHARE:.0%} of pauses regretted ({share})"
        )
    return (
        f"{name}: the smallest share of regrets ({share}); no setting stays below "
        f"{REGRET_SHARE:.0%}, so ask whoever is disturbed before you choose any"
    )


def _remarks(found: Sequence[Outcome], *, held: int, judged: int, pods: int) -> tuple[str, ...]:
    told = []
    if judged < held:
        share = judged / held
        told.append(
            f"of {1 - share:.1%} of the held GPU time there is no sample; nothing is idle, "
            "returned or regretted in it"
        )
    if pods:
        told.append(
            f"the owner of {pods} pods is not known (kube-state-metrics told nothing of them); "
            "each counts as a workload of its own"
        )
    if any(one.total.still_open for one in found):
        hour = f"{REGRET_SECONDS / MINUTE:.0f} minutes"
        told.append(f"pauses within the last {hour} of the history count as not regretted")
    return tuple(told)
