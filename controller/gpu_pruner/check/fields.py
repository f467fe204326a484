"""Which fields each GPU model exports, and what the missing ones mean. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpu_pruner.check.finding import Area, Finding, Level, counted
from gpu_pruner.decide.meters import is_proven
from gpu_pruner.decide.signals import LIVENESS_ORDER, PRIMARY_ORDER, SIGNALS
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import Meter, Signal
from gpu_pruner.model.survey import Survey
from gpu_pruner.observe.profiles import BY_METRIC

WORTH_HAVING = (
    Signal.ENGINE,
    Signal.UTIL,
    Signal.DRAM,
    Signal.ENCODER,
    Signal.DECODER,
    Signal.COPY,
    Signal.PCIE,
    Signal.ENERGY,
    Signal.XID,
)
"""Signals that NVIDIA's exporter has by default, and whose lack leaves some work unseen."""

_FIELDS: Mapping[Signal, str] = {
    Signal.ENGINE: "DCGM_FI_PROF_GR_ENGINE_ACTIVE, gauge, Graphics engine activity.",
    Signal.UTIL: "DCGM_FI_DEV_GPU_UTIL, gauge, GPU utilization.",
    Signal.DRAM: "DCGM_FI_PROF_DRAM_ACTIVE, gauge, Memory activity.",
    Signal.ENCODER: "DCGM_FI_DEV_ENC_UTIL, gauge, Encoder utilization.",
    Signal.DECODER: "DCGM_FI_DEV_DEC_UTIL, gauge, Decoder utilization.",
    Signal.COPY: "DCGM_FI_DEV_MEM_COPY_UTIL, gauge, Memory utilization.",
    Signal.PCIE: "DCGM_FI_PROF_PCIE_TX_BYTES, gauge, PCIe bytes sent.\n"
    "DCGM_FI_PROF_PCIE_RX_BYTES, gauge, PCIe bytes received.",
    Signal.ENERGY: "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, counter, Energy since boot.",
    Signal.XID: "DCGM_FI_DEV_XID_ERRORS, gauge, Last XID error.",
}
"""Lines of a counters file, in the names of exporters up to 4.8."""

_PROFILING = (
    "profiling fields need root or SYS_ADMIN in the exporter's pod, one host engine per node, and "
    "a DCGM that knows the model; they are asked for when the exporter starts, so restart it"
)


def findings(survey: Survey, rules: Rules, *, proven: frozenset[Meter]) -> Iterator[Finding]:
    """Say for each model what is exported, and what is missing.

    Args:
        survey: what the source exports.
        rules: for liveness, and models that the settings trust.
        proven: meters that were seen to show work, as the cycle has them.
    """
    for model, metrics in sorted(survey.models.items()):
        counts: dict[Signal, int] = {}
        for metric, devices in metrics.items():
            if metric in BY_METRIC:
                signal = BY_METRIC[metric].signal
                counts[signal] = max(devices, counts.get(signal, 0))
        if counts:
            # Energy is the board's, and its slices have the rest: the more of the two counts.
            yield from _model(model, counts, rules=rules, proven=proven)


def _model(
    model: str, counts: Mapping[Signal, int], *, rules: Rules, proven: frozenset[Meter]
) -> Iterator[Finding]:
    devices = max(counts.values())
    name = f"{model or 'A model that nobody names'} ({counted(devices, 'device')})"
    primary = next((one for one in PRIMARY_ORDER if one in counts), None)
    has_primary = max((counts.get(one, 0) for one in PRIMARY_ORDER), default=0)
    if primary is None:
        told = f"{name}: no field that could prove idleness, so it is never judged"
        yield _finding(Level.FAIL, told, _counters([Signal.ENGINE, Signal.UTIL]))
    elif primary is Signal.UTIL:
        told = f"{name}: utilisation and no profiling field, so its window is doubled, and MIG "
        yield _finding(
            Level.WARN, f"{told}slices are never judged", _counters([Signal.ENGINE], profiling=True)
        )
    if primary is not None and has_primary < devices:
        told = f"{name}: {devices - has_primary} of them without a field that could prove idleness"
        yield _finding(Level.WARN, told, _PROFILING)
    if rules.liveness_required and not any(one in counts for one in LIVENESS_ORDER):
        told = f"{name}: neither energy, power nor temperature, so nothing shows that readings live"
        yield _finding(Level.FAIL, told, _counters([Signal.ENERGY]))
    if primary is not None and not is_proven(model, primary, rules=rules, seen=proven):
        told = f"{name}: a zero of its {SIGNALS[primary].word} is not believed, because it was "
        fix = (
            f'wait until one of them works, or, if you know better: measurable_models: ["{model}"]'
        )
        yield _finding(Level.WARN, f"{told}never seen to show work on this model", fix)
    told_of = {Signal.ENGINE, Signal.UTIL} if primary is None else set()
    yield _completeness(
        name, counts, told_of={Signal.ENGINE} if primary is Signal.UTIL else told_of
    )


def _completeness(name: str, counts: Mapping[Signal, int], *, told_of: set[Signal]) -> Finding:
    have = ", ".join(SIGNALS[one].word for one in Signal if one in counts)
    missing = [one for one in WORTH_HAVING if one not in counts and one not in told_of]
    if not missing:
        return _finding(Level.OK, f"{name}: {have}")
    lacks = ", ".join(SIGNALS[one].word for one in missing)
    told = f"{name}: {have}. Not exported: {lacks}; work that only they show is not seen"
    return _finding(Level.WARN, told, _counters(missing))


def _counters(signals: list[Signal], *, profiling: bool = False) -> str:
    lines = "\n".join(_FIELDS[one] for one in signals)
    told = f"add to the exporter's counters file:\n{lines}"
    return f"{told}\n{_PROFILING}" if profiling else told


def _finding(level: Level, sentence: str, fix: str = "") -> Finding:
    return Finding(level=level, area=Area.FIELDS, sentence=sentence, fix=fix)
