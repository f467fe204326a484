"""Telemetry of a large fleet, as Prometheus would have stored it: text for promtool, streamed.

Three metrics of 15 labels, nodes of 8 GPUs that are scraped at moments of their own; a tenth of the
GPUs is unallocated, four tenths work.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.figures import MissingProgram
from gpu_pruner.model.signals import DeviceId
from gpu_pruner.model.units import Seconds, Timestamp

END: Timestamp = 1_767_268_740.0
"""2026-01-01 11:59:00 UTC: the last hour or so lies in one block of Prometheus' store."""

SCRAPE_SECONDS = 30
_PER_NODE = 8
_IDLE_JOULES, _BUSY_JOULES = 70, 600
_PROMTOOL_SECONDS = 600
METRICS = (
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """So many GPUs over so long."""

    gpus: int
    seconds: Seconds

    def devices(self, count: int) -> tuple[DeviceId, ...]:
        """Return the first devices."""
        return tuple(DeviceId(uuid(number)) for number in range(count))

    def stored(self, folder: Path) -> Path:
        """Return a data directory for Prometheus with the fleet's history.

        Raises:
            MissingProgram: promtool or prometheus is not installed.
        """
        missing = [name for name in ("prometheus", "promtool") if shutil.which(name) is None]
        if missing:
            raise MissingProgram(f"{' and '.join(missing)} not found: apt-get install prometheus")
        folder.mkdir(parents=True, exist_ok=True)
        text, data = folder / "history.om", folder / "data"
        with text.open("w", encoding="utf-8") as file:
            file.writelines(self._lines())
        command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(data)]
        subprocess.run(command, check=True, capture_output=True, timeout=_PROMTOOL_SECONDS)  # noqa: S603 - found above
        text.unlink()
        return data

    def _lines(self) -> Iterator[str]:
        stamps = [self._stamps(phase) for phase in range(SCRAPE_SECONDS)]
        for metric in METRICS:
            yield f"# TYPE {metric} gauge\n"
            for number in range(self.gpus):
                series = f"{metric}{{{labels(number)}}}"
                node_stamps = stamps[number // _PER_NODE % SCRAPE_SECONDS]
                if metric == METRICS[2]:
                    yield from _counter(series, node_stamps, number)
                else:
                    yield from [
                        f"{series} {_reading(metric, number, scrape)} {stamp}\n"
                        for scrape, stamp in enumerate(node_stamps)
                    ]
        yield "# TYPE node_dmi_info gauge\n"
        for number in range(0, self.gpus, _PER_NODE):
            line = f'node_dmi_info{{Hostname="{node(number)}",product_name="dgx"}} 1'
            yield from [f"{line} {stamp}\n" for stamp in stamps[0]]
        yield "# EOF\n"

    def _stamps(self, phase: int) -> list[str]:
        count = int(self.seconds) // SCRAPE_SECONDS
        return [f"{END - phase - n * SCRAPE_SECONDS:.3f}" for n in reversed(range(count))]


def _counter(series: str, stamps: list[str], number: int) -> list[str]:
    watts = _BUSY_JOULES if is_busy(number) else _IDLE_JOULES
    start = 10**9 + number * 977_351
    step = watts * SCRAPE_SECONDS * 1000
    return [f"{series} {start + n * step} {stamp}\n" for n, stamp in enumerate(stamps)]


def _reading(metric: str, number: int, scrape: int) -> str:
    """Return a value: of a GPU at work another one in each scrape, as in life."""
    if not is_busy(number):
        return "0"
    noise = (number * 7919 + scrape * 104_729) % 1_000_000
    return f"0.{400_000 + noise // 2}" if metric == METRICS[0] else str(40 + noise % 50)


def is_busy(number: int) -> bool:
    """Tell whether a GPU works: four in ten do, spread over all nodes."""
    return number % 10 in {1, 3, 5, 7}


def uuid(number: int) -> str:
    """Return a GPU's UUID; its first digits are spread evenly, as random ones are."""
    return f"GPU-{number * 2_654_435_761 % 2**32:08x}-5f2e-4c1b-9d3a-{number:012x}"


def node(number: int) -> str:
    """Return the node of a GPU."""
    return f"node-{number // _PER_NODE:05}"


def labels(number: int) -> str:
    """Return a series' labels, as stored with honorLabels false."""
    place = number % _PER_NODE
    own = {
        "gpu": str(place),
        "UUID": uuid(number),
        "device": f"nvidia{place}",
        "pci_bus_id": f"00000000:{place:02X}:00.0",
        "modelName": "NVIDIA H100 80GB HBM3",
        "Hostname": node(number),
        "DCGM_FI_DRIVER_VERSION": "550.54.15",
        "job": "dcgm-exporter",
        "instance": f"10.{number // 65536}.{number // 256 % 256}.{number % 256}:9400",
        "namespace": "gpu-operator",
        "pod": f"dcgm-exporter-{number // _PER_NODE:05}",
        "container": "exporter",
    }
    if number % 10:
        own |= {
            "exported_namespace": f"team-{number % 200}",
            "exported_pod": f"train-{number:05}",
            "exported_container": "main",
        }
    return ",".join(f'{name}="{text}"' for name, text in own.items())
