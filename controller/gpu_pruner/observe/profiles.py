"""Which exported metric means what: the one table of metric names, scales and uses.

A new exporter generation is new rows, nothing else. Names that are not in the table are never
guessed at; those that look like DCGM's are told to the operator. Read by both telemetry sources;
holds no behaviour beyond reading its own rows, and makes no queries. Which values are possible for
a signal stands in `decide.signals`; here stands only where one name was exported at two scales.

Source of names and scales: NVIDIA's dcgm-exporter (fields of the counters files it ships, release
notes of 4.9 for the newer names), and the documentation of the other exporters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain

from gpu_pruner.model.signals import Signal
from gpu_pruner.observe import labels
from gpu_pruner.settings.schema import ProfileName


class Use(StrEnum):
    """What a signal is asked for; decides whether the screen needs it."""

    PRIMARY = "primary"
    """Its silence may prove idleness. Screened in full where a device has nothing better."""
    ACTIVITY = "activity"
    """May show work. Screened for work only."""
    LIVENESS = "liveness"
    """Shows that the reading moves. Screened where it covers devices that a better one does not."""
    CONTEXT = "context"
    """Read by verify only."""


USES: Mapping[Signal, Use] = {
    Signal.ENGINE: Use.PRIMARY,
    Signal.SM: Use.PRIMARY,
    Signal.UTIL: Use.PRIMARY,
    Signal.ENERGY: Use.LIVENESS,
    Signal.POWER: Use.LIVENESS,
    Signal.TEMPERATURE: Use.LIVENESS,
    Signal.MEMORY: Use.CONTEXT,
    Signal.XID: Use.CONTEXT,
}
"""Signals that are not listed are activity."""


def use_of(signal: Signal) -> Use:
    """Return what a signal is asked for."""
    return USES.get(signal, Use.ACTIVITY)


PRIMARY_ORDER = (Signal.ENGINE, Signal.SM, Signal.UTIL)
"""Best first."""

LIVENESS_ORDER = (Signal.ENERGY, Signal.POWER, Signal.TEMPERATURE)
"""Best first: energy integrates, power and temperature only sample."""

MIB = float(2**20)
PERCENT = 100.0
TRAFFIC_FLOOR = 1e6
"""Bytes per second. Idle GPUs chatter at 10^4 to 10^5; a screen does not ask for less than this."""


@dataclass(frozen=True, slots=True)
class Field:
    """One metric name as exported."""

    metric: str
    signal: Signal
    scale: float = 1.0
    """Exported value x scale = value in the unit of the `Signal`."""
    ambiguous_above: float = math.inf
    """An exported value above this came at another scale: it is taken as it is, and doubted."""
    whole: bool = False
    """Exported as whole numbers: a fraction is at another scale, and is doubted."""
    floor: float = 0.0
    """Exported values up to this are noise that a screen does not ask for."""
    joined: str = ""
    """Fields with the same word are directions of one traffic: their values are added."""
    proves_idle: bool = True
    """False: its quiet values are not taken, because this exporter also says 0 for not known."""
    uuids: tuple[str, ...] = (labels.UUID,)
    """Labels that may hold the device's UUID."""
    events: str = ""
    """Label whose every value is an event of its own: a new one is a change of the signal."""

    @property
    def use(self) -> Use:
        """Return what the field's signal is asked for."""
        return use_of(self.signal)

    @property
    def single_scale(self) -> bool:
        """Whether every value is at the scale of this row."""
        return self.ambiguous_above == math.inf and not self.whole

    def is_ambiguous(self, exported: float) -> bool:
        """Whether a value shows that it is not at the scale of this row."""
        return exported > self.ambiguous_above or (self.whole and exported % 1 != 0)


@dataclass(frozen=True, slots=True)
class Profile:
    """What one family of exporters says."""

    fields: tuple[Field, ...]
    names: str = ""
    """Regular expression of the family's metric names, to find those that we do not know."""
    unread: tuple[str, ...] = ()
    """Regular expressions of names that we know and have no use for."""
    advice: str = ""
    """What somebody who chose the profile should know."""


_CLASSIC: tuple[Field, ...] = (
    Field("DCGM_FI_PROF_GR_ENGINE_ACTIVE", Signal.ENGINE),
    Field("DCGM_FI_PROF_SM_ACTIVE", Signal.SM),
    Field("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", Signal.TENSOR),
    Field("DCGM_FI_PROF_DRAM_ACTIVE", Signal.DRAM),
    Field("DCGM_FI_DEV_GPU_UTIL", Signal.UTIL, whole=True),
    Field("DCGM_FI_DEV_ENC_UTIL", Signal.ENCODER, whole=True),
    Field("DCGM_FI_DEV_DEC_UTIL", Signal.DECODER, whole=True),
    Field("DCGM_FI_DEV_JPG_UTIL", Signal.JPEG, whole=True),
    Field("DCGM_FI_DEV_OFA_UTIL", Signal.OFA, whole=True),
    Field("DCGM_FI_DEV_MEM_COPY_UTIL", Signal.COPY, whole=True),
    Field("DCGM_FI_PROF_PCIE_RX_BYTES", Signal.PCIE, floor=TRAFFIC_FLOOR, joined="PCIe RX+TX"),
    Field("DCGM_FI_PROF_PCIE_TX_BYTES", Signal.PCIE, floor=TRAFFIC_FLOOR, joined="PCIe RX+TX"),
    Field(
        "DCGM_FI_PROF_NVLINK_RX_BYTES",
        Signal.NVLINK,
        floor=TRAFFIC_FLOOR,
        joined="NVLink RX+TX",
        uuids=(labels.UUID, labels.LINK_UUID),
    ),
    Field(
        "DCGM_FI_PROF_NVLINK_TX_BYTES",
        Signal.NVLINK,
        floor=TRAFFIC_FLOOR,
        joined="NVLink RX+TX",
        uuids=(labels.UUID, labels.LINK_UUID),
    ),
    Field("DCGM_FI_DEV_POWER_USAGE", Signal.POWER),
    Field("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", Signal.ENERGY, scale=1e-3),
    Field("DCGM_FI_DEV_GPU_TEMP", Signal.TEMPERATURE),
    Field("DCGM_FI_DEV_FB_USED", Signal.MEMORY, scale=MIB),
    Field("DCGM_FI_DEV_XID_ERRORS", Signal.XID, events="err_code"),
)
"""Exporter 2.x to 4.8. Energy in millijoules, memory in mebibytes, traffic in bytes per second
(gauges, whatever an older counters file calls them)."""

_RENAMED: tuple[Field, ...] = (
    Field("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", Signal.ENGINE),
    Field("DCGM_FI_PROF_SM_UTIL_RATIO", Signal.SM),
    Field("DCGM_FI_PROF_TENSOR_UTIL_RATIO", Signal.TENSOR),
    Field("DCGM_FI_PROF_DRAM_UTIL_RATIO", Signal.DRAM),
    # DCGM 4.6 had these names already, for whole percentages.
    Field("DCGM_FI_DEV_GPU_UTIL_RATIO", Signal.UTIL, scale=PERCENT, ambiguous_above=1.0),
    Field("DCGM_FI_DEV_ENC_UTIL_RATIO", Signal.ENCODER, scale=PERCENT, ambiguous_above=1.0),
    Field("DCGM_FI_DEV_DEC_UTIL_RATIO", Signal.DECODER, scale=PERCENT, ambiguous_above=1.0),
    Field("DCGM_FI_DEV_JPG_UTIL_RATIO", Signal.JPEG, scale=PERCENT, ambiguous_above=1.0),
    Field("DCGM_FI_DEV_OFA_UTIL_RATIO", Signal.OFA, scale=PERCENT, ambiguous_above=1.0),
    Field("DCGM_FI_DEV_MEMORY_UTIL_RATIO", Signal.COPY, scale=PERCENT, ambiguous_above=1.0),
    Field("DCGM_FI_DEV_BOARD_POWER_WATTS", Signal.POWER),
    Field("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", Signal.ENERGY),
    Field("DCGM_FI_DEV_GPU_TEMP_CELSIUS", Signal.TEMPERATURE),
    Field("DCGM_FI_DEV_FB_USED_BYTES", Signal.MEMORY),
    Field("DCGM_FI_DEV_XID_ERROR", Signal.XID, events="err_code"),
)
"""Exporter 4.9 with DCGM 4.7: names that carry their unit. The traffic names stayed."""

_OLD_NAMES = {
    "dcgm_fi_prof_gr_engine_active": "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "dcgm_fi_prof_sm_active": "DCGM_FI_PROF_SM_ACTIVE",
    "dcgm_fi_prof_pipe_tensor_active": "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "dcgm_fi_prof_dram_active": "DCGM_FI_PROF_DRAM_ACTIVE",
    "dcgm_fi_prof_pcie_rx_bytes": "DCGM_FI_PROF_PCIE_RX_BYTES",
    "dcgm_fi_prof_pcie_tx_bytes": "DCGM_FI_PROF_PCIE_TX_BYTES",
    "dcgm_gpu_utilization": "DCGM_FI_DEV_GPU_UTIL",
    "dcgm_enc_utilization": "DCGM_FI_DEV_ENC_UTIL",
    "dcgm_dec_utilization": "DCGM_FI_DEV_DEC_UTIL",
    "dcgm_mem_copy_utilization": "DCGM_FI_DEV_MEM_COPY_UTIL",
    "dcgm_power_usage": "DCGM_FI_DEV_POWER_USAGE",
    "dcgm_total_energy_consumption": "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "dcgm_gpu_temp": "DCGM_FI_DEV_GPU_TEMP",
    "dcgm_fb_used": "DCGM_FI_DEV_FB_USED",
    "dcgm_xid_errors": "DCGM_FI_DEV_XID_ERRORS",
}
"""Names of exporter 1.x, and of later ones with ``--use-old-namespace``. Labels are older too."""

_OLD = tuple(
    replace(field, metric=old, uuids=(labels.OLD_UUID, labels.UUID))
    for old, classic in _OLD_NAMES.items()
    for field in _CLASSIC
    if field.metric == classic
)

PROFILES: Mapping[ProfileName, Profile] = {
    ProfileName.DCGM: Profile(
        (*_CLASSIC, *_RENAMED, *_OLD),
        names="(DCGM_|dcgm_).+",
        unread=(
            "(DCGM_FI_DEV|dcgm)_(sm|mem|memory)_clock(_hz|_hertz)?",
            "(DCGM_FI_DEV|dcgm)_mem(ory)?_temp(_celsius)?",
            "(DCGM_FI_DEV|dcgm)_fb_(free|reserved|total|capacity|used_percent|used_ratio)(_bytes)?",
            "(DCGM_FI_DEV|dcgm)_(pcie|nvlink)_.*",
            "(DCGM_FI_DEV|dcgm)_.*(remap|retired|ecc|violation|license|count|limit|clock_event).*",
            "DCGM_FI_PROF_(sm_occupancy|pipe_(fp|int|tensor_).*|fp.*|int_.*|[hid]mma_.*|nv(link|enc|dec|jpg|ofa).*)(_ratio)?",
            "DCGM_FI_(DRIVER|CUDA|NVML|SYSTEM|PROCESS)_.*",
            "DCGM_EXP_.*",
            "dcgm_exporter_.*",
        ),
    ),
    ProfileName.GOOGLE: Profile(
        (
            Field(
                "kubernetes_io:container_accelerator_duty_cycle",
                Signal.UTIL,
                uuids=(labels.ACCELERATOR_ID,),
            ),
            Field(
                "kubernetes_io:container_accelerator_memory_used",
                Signal.MEMORY,
                uuids=(labels.ACCELERATOR_ID,),
            ),
        ),
        advice="Google's system metrics sample the duty cycle coarsely and have no energy, power "
        "or temperature: alone they prove work, and idleness only with liveness off",
    ),
    ProfileName.AZURE: Profile(
        (),
        advice="Azure Monitor has DCGM's own names, but drops what its keep-list does not name: "
        "add engine activity, utilisation and energy to it",
    ),
    ProfileName.NVIDIA_SMI: Profile(
        (
            Field("nvidia_smi_utilization_gpu_ratio", Signal.UTIL, PERCENT, uuids=("uuid",)),
            Field("nvidia_smi_utilization_encoder_ratio", Signal.ENCODER, PERCENT, uuids=("uuid",)),
            Field("nvidia_smi_utilization_decoder_ratio", Signal.DECODER, PERCENT, uuids=("uuid",)),
            Field("nvidia_smi_utilization_memory_ratio", Signal.COPY, PERCENT, uuids=("uuid",)),
            Field("nvidia_smi_power_draw_watts", Signal.POWER, uuids=("uuid",)),
            Field("nvidia_smi_energy_joules_total", Signal.ENERGY, uuids=("uuid",)),
            Field("nvidia_smi_temperature_gpu", Signal.TEMPERATURE, uuids=("uuid",)),
            Field("nvidia_smi_memory_used_bytes", Signal.MEMORY, uuids=("uuid",)),
        ),
        advice="nvidia_gpu_exporter names no pod, so its GPUs cannot be told to belong to one: "
        "they are UNKNOWN unless relabelling adds pod and namespace",
    ),
    ProfileName.AMD: Profile(
        tuple(
            Field(
                prefix + name,
                signal,
                scale,
                uuids=(labels.LINK_UUID,),
                proves_idle=False,
            )
            for prefix in ("", "amd_")
            for name, signal, scale in (
                ("gpu_gfx_activity", Signal.UTIL, 1.0),
                ("gpu_umc_activity", Signal.COPY, 1.0),
                ("gpu_mm_activity", Signal.DECODER, 1.0),
                ("gpu_package_power", Signal.POWER, 1.0),
                ("gpu_energy_consumed", Signal.ENERGY, 1e-6),
            )
        ),
        advice="AMD's exporter says 0 for fields that it cannot read and for every partition but "
        "the first: it shows work, and never proves idleness",
    ),
}
"""Every family that we can read. Only `ProfileName.DCGM` is read unless the settings say more."""

FIELDS: tuple[Field, ...] = tuple(field for one in PROFILES.values() for field in one.fields)
"""Every field of every profile."""

BY_METRIC: Mapping[str, Field] = {field.metric: field for field in FIELDS}


def fields_of(profiles: Iterable[ProfileName]) -> tuple[Field, ...]:
    """Return the fields that these profiles read, best primary and liveness signals first."""
    chosen = [field for name in dict.fromkeys(profiles) for field in PROFILES[name].fields]
    place = {signal: number for number, signal in enumerate(Signal)}
    return tuple(sorted(chosen, key=lambda field: place[field.signal]))


GENERATIONS: Mapping[str, frozenset[str]] = {
    "dcgm-exporter 4.9 or newer": frozenset(one.metric for one in _RENAMED),
    "dcgm-exporter 2.x to 4.8": frozenset(one.metric for one in _CLASSIC),
    "dcgm-exporter 1.x, or its old names": frozenset(one.metric for one in _OLD),
}
"""Generations of NVIDIA's exporter, by the names that they export. The traffic names never
changed, so they tell the second only where nothing of the first is there."""


def generations_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the generations of NVIDIA's exporter that speak in these metric names."""
    names = frozenset(names)
    shared = {one for one in names if BY_METRIC.get(one) and BY_METRIC[one].joined}
    return tuple(said for said, own in GENERATIONS.items() if own & (names - shared))


def unknown_names(names: Iterable[str], profiles: Iterable[ProfileName]) -> frozenset[str]:
    """Return those of these metric names that look like a profile's, and stand in no table.

    Args:
        names: as exported.
        profiles: those that are read. Names that a profile knows without reading them are left out.
    """
    chosen = [PROFILES[one] for one in profiles]
    ours = re.compile("|".join(one.names for one in chosen if one.names) or "(?!)")
    unread = re.compile(
        "|".join(chain.from_iterable(one.unread for one in chosen)) or "(?!)", re.IGNORECASE
    )
    return frozenset(
        name
        for name in names
        if name not in BY_METRIC and ours.fullmatch(name) and not unread.fullmatch(name)
    )


def _any(patterns: Iterable[str]) -> re.Pattern[str]:
    """Return what matches any of these patterns, whatever the case; nothing where there is none."""
    return re.compile("|".join(patterns) or "(?!)", re.IGNORECASE)
