"""What was found, in sentences for the operator. Pure.

They go into `Screen.notes`: shown by `check`, `once` and the log, never acted upon. Called by
`observe.prometheus` and `observe.scrape`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpu_pruner.model.signals import Period, Signal
from gpu_pruner.model.units import rfc3339
from gpu_pruner.observe.profiles import PROFILES, Use
from gpu_pruner.observe.prometheus_probe import Probe
from gpu_pruner.settings.schema import ProfileName, PrometheusSettings

_NAMED = 5


def found(probe: Probe, settings: PrometheusSettings) -> Iterator[str]:
    """Return what the operator should know, the label scheme first."""
    yield _scheme(probe)
    if settings.honor_labels is True and probe.exported and not probe.native:
        yield "honor_labels is true, but workloads are in exported_pod: unset it, or set false"
    if settings.honor_labels is False and probe.native and not probe.exported:
        yield "honor_labels is false, but workloads are in pod: unset it, or set true"
    if weak := probe.weaker.get(Signal.UTIL):
        yield (
            f"{weak} devices export only GPU_UTIL; their window is doubled "
            "(profiling metrics would make it normal)"
        )
    if probe.rescaled:
        yield (
            f"{probe.rescaled} devices have utilisation at another scale than its name says; "
            "anything above 0 counts as work"
        )
    if probe.nameless:
        yield f"{probe.nameless} series name no device (no UUID label) and are left out"
    if probe.duplicates > 1:
        yield (
            f"up to {probe.duplicates} series say the same of one device (HA pair or double "
            "scrape); harmless, the highest counts"
        )
    yield from unread(probe.unknown)
    yield from advice(settings.profiles)


def unprovable(probe: Probe, period: Period) -> str:
    """Say why a screen without any peak tells nothing, to stand behind the server's name.

    Args:
        probe: that found series of devices.
        period: that was asked for.
    """
    devices = max(probe.devices.values())
    some = f"{devices} device{'s' * (devices != 1)}"
    if any(one.use is Use.PRIMARY and one.metric in probe.devices for one in probe.fields):
        return (
            f"has known {some}, but no sample of them since {rfc3339(period.start)}: exporters or "
            "their scrapes have stopped, or use other names now; look at Prometheus' targets page"
        )
    names = sorted(probe.devices)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return (
        f"has {', '.join(names[:_NAMED])}{more} of {some}, and neither engine activity nor "
        "utilisation, which alone can prove that a GPU is idle; add DCGM_FI_PROF_GR_ENGINE_ACTIVE "
        "or DCGM_FI_DEV_GPU_UTIL, or what your exporter calls them, to the metrics that it exports"
    )


def unread(unknown: Iterable[str]) -> Iterator[str]:
    """Name metrics that look like a GPU's and are in no table of ours."""
    names = sorted(unknown)
    if names:
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield (
            f"{len(names)} GPU metrics are not known to this version and not read: "
            f"{', '.join(names[:_NAMED])}{more}; work that only they show is not seen"
        )


def advice(profiles: Iterable[ProfileName]) -> Iterator[str]:
    """Tell the limits of the profiles that were chosen."""
    yield from filter(None, (PROFILES[one].advice for one in profiles))


def _scheme(probe: Probe) -> str:
    if probe.exported and probe.native:
        return (
            f"label schemes are mixed: exported_pod on {probe.exported} series, pod on "
            f"{probe.native}"
        )
    if probe.exported:
        return f"workloads are in exported_pod (honorLabels false) on {probe.exported} series"
    if probe.native:
        return f"workloads are in pod (honorLabels true) on {probe.native} series"
    return "no series names a pod: nothing is allocated, or the exporter's pod mapping is off"
