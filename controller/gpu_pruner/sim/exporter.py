"""The text that a DCGM exporter of the simulated cluster answers with.

Imitates dcgm-exporter 4.x: its metric names, label order, six decimals for ratios and watts,
whole numbers otherwise, pod labels only while a pod holds the device, and cached values: a scrape
shows the last collect, labelled with who holds the device *now*. Of time-sliced GPUs it tells every
sharer (``KUBERNETES_VIRTUAL_GPUS``), in the label ``vgpu``. Called by `serving` and `history`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpu_pruner.model.units import Timestamp
from gpu_pruner.sim.meter import Meter, Reading
from gpu_pruner.sim.occupancy import Device, Holding, Occupancy

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
DRIVER_VERSION = "550.90.07"


@dataclass(frozen=True, slots=True)
class Family:
    """One exported metric."""

    name: str
    type: str
    help: str
    value: Callable[[Reading], str]
    """Writes the value as the exporter prints it."""
    on_slices: bool = True
    """Whether MIG slices have it."""


FAMILIES = (
    Family("DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock (in MHz).", lambda r: str(r.sm_clock_mhz)),
    Family(
        "DCGM_FI_DEV_GPU_TEMP",
        "gauge",
        "GPU temperature (in C).",
        lambda r: str(r.temperature_celsius),
    ),
    Family(
        "DCGM_FI_DEV_POWER_USAGE",
        "gauge",
        "Board power (in W).",
        lambda r: f"{r.power_watts:.6f}",
    ),
    Family(
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "counter",
        "Energy used since the driver was loaded (in mJ).",
        lambda r: str(r.energy_millijoules),
    ),
    Family(
        "DCGM_FI_DEV_GPU_UTIL",
        "gauge",
        "GPU utilization (in %).",
        lambda r: str(r.util_percent),
        on_slices=False,
    ),
    Family(
        "DCGM_FI_DEV_ENC_UTIL",
        "gauge",
        "Encoder utilization (in %).",
        lambda r: str(r.encoder_percent),
        on_slices=False,
    ),
    Family(
        "DCGM_FI_DEV_DEC_UTIL",
        "gauge",
        "Decoder utilization (in %).",
        lambda _: "0",
        on_slices=False,
    ),
    Family(
        "DCGM_FI_DEV_FB_FREE",
        "gauge",
        "Free device memory (in MiB).",
        lambda r: str(r.memory_free_mib),
    ),
    Family(
        "DCGM_FI_DEV_FB_USED",
        "gauge",
        "Used device memory (in MiB).",
        lambda r: str(r.memory_used_mib),
    ),
    Family("DCGM_FI_DEV_XID_ERRORS", "gauge", "Last Xid error.", lambda _: "0"),
    Family(
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "gauge",
        "Ratio of time the graphics engine is active.",
        lambda r: f"{r.engine:.6f}",
    ),
    Family(
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        "gauge",
        "Ratio of cycles the tensor pipe is active.",
        lambda r: f"{r.engine * 0.45:.6f}",
    ),
    Family(
        "DCGM_FI_PROF_DRAM_ACTIVE",
        "gauge",
        "Ratio of cycles the memory interface is active.",
        lambda r: f"{r.engine * 0.3:.6f}",
    ),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One device at one moment: what all its lines share."""

    device: Device
    device_labels: tuple[tuple[str, str], ...]
    pod_labels: tuple[tuple[str, str], ...]
    reading: Reading


def device_labels(device: Device) -> tuple[tuple[str, str], ...]:
    """Return the labels of a device, in the exporter's order."""
    slice_labels: tuple[tuple[str, str], ...] = ()
    if device.mig_instance:
        slice_labels = (
            ("GPU_I_PROFILE", device.mig_profile),
            ("GPU_I_ID", device.mig_instance),
        )
    return (
        ("gpu", str(device.index)),
        ("UUID", device.uuid),
        ("pci_bus_id", f"00000000:{0x1A + 0x11 * device.index:02X}:00.0"),
        ("device", f"nvidia{device.index}"),
        ("modelName", device.model),
        *slice_labels,
        ("Hostname", device.node),
        ("DCGM_FI_DRIVER_VERSION", DRIVER_VERSION),
    )


def pod_labels(holder: Holding | None) -> tuple[tuple[str, str], ...]:
    """Return the labels that name the holder, in the exporter's order; none where nobody is."""
    if holder is None:
        return ()
    return (
        ("container", holder.container),
        ("namespace", holder.namespace),
        ("pod", holder.pod),
        *((("vgpu", holder.device.share),) if holder.device.share else ()),
    )


def line(name: str, labels: tuple[tuple[str, str], ...]) -> str:
    """Write the begin of a sample's line; the value follows it."""
    inside = ",".join(f'{key}="{escaped(text)}"' for key, text in labels)
    return f"{name}{{{inside}}} "


def escaped(value: str) -> str:
    """Escape a label value as the text format wants it."""
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def families_of(device: Device) -> tuple[Family, ...]:
    """Return the metrics that a device has: a MIG slice has no utilisation of its own."""
    return tuple(one for one in FAMILIES if one.on_slices or not device.mig_instance)


class Exporter:
    """The exporters of all nodes."""

    def __init__(self, meter: Meter, occupancy: Occupancy) -> None:
        self.meter = meter
        self._occupancy = occupancy

    def rows(self, node: str, moment: Timestamp) -> Iterator[Row]:
        """Read all devices of a node that have series at a moment, in order.

        Each pod that shares a GPU has series of its own, with the values of the whole board; those
        of a share that nobody holds are shown of the first only, where nobody holds any.
        """
        for device in self._occupancy.devices[node]:
            if self.meter.is_missing(device, moment):
                continue
            holder = self._occupancy.holder(device, moment)
            if holder is not None or self._stands_for_its_board(device, moment):
                reading = self.meter.read(device, moment)
                yield Row(device, device_labels(device), pod_labels(holder), reading)

    def _stands_for_its_board(self, device: Device, moment: Timestamp) -> bool:
        """Tell whether a device that nobody holds is shown."""
        if not device.share:
            return True
        shares = [one for one in self._occupancy.devices[device.node] if one.uuid == device.uuid]
        return device == shares[0] and not any(
            self._occupancy.holder(one, moment) for one in shares
        )

    def exposition(self, node: str, moment: Timestamp) -> str:
        """Return what a scrape of a node's exporter answers at a moment."""
        seen = list(self.rows(node, moment))
        lines: list[str] = []
        for family in FAMILIES:
            samples = [
                line(family.name, row.device_labels + row.pod_labels) + family.value(row.reading)
                for row in seen
                if family in families_of(row.device)
            ]
            if samples:
                lines.append(f"# HELP {family.name} {family.help}")
                lines.append(f"# TYPE {family.name} {family.type}")
                lines += samples
        return "\n".join([*lines, ""])
