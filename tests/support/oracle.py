"""An independent opinion on what is idle: whole-window PromQL over plain HTTP, and nothing of ours.

Each rule is one expression over the whole window at one moment. A device is idle if a primary
signal covers the window and is fresh, every signal that there is reads quiet and is a number, and
the energy counter moves, often enough and in the newest steps. Steps are whole minutes that end at
the moment asked about; so freshness, too, counts in whole minutes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode
from urllib.request import Request, urlopen

ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
DRAM = "DCGM_FI_PROF_DRAM_ACTIVE"
UTIL = "DCGM_FI_DEV_GPU_UTIL"
ENCODER = "DCGM_FI_DEV_ENC_UTIL"
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"

THRESHOLD = 0.01
MINUTES = 35
BY = "by (UUID, GPU_I_ID)"

Device = tuple[str, str]
"""UUID and MIG instance."""


@dataclass(frozen=True)
class Oracle:
    """Asks one server."""

    url: str

    def idle(self, at: float) -> set[Device]:
        """Return the devices that are idle at a whole minute, whoever owns them."""
        exporting = self._devices(f"count {BY} (count_over_time({ENGINE}[{2 * MINUTES}m]))", at)
        found = self._devices(self._quiet(ENGINE, MINUTES), at)
        return found | (self._devices(self._quiet(UTIL, 2 * MINUTES), at) - exporting)

    def owned_by_one(self, at: float, minutes: int) -> set[Device]:
        """Return the devices that carried at most one pod's name in the minutes before a moment."""
        each = (f'count_over_time({one}{{exported_pod!=""}}[{minutes}m])' for one in (ENGINE, UTIL))
        named = " or ".join(each)
        owners = f"count by (UUID, GPU_I_ID, exported_namespace, exported_pod) ({named})"
        return self._devices(f"count {BY} ({owners}) == 1", at)

    def _quiet(self, primary: str, minutes: int) -> str:
        """Return the one expression for devices with this primary signal."""
        steps = f"{minutes - 1}m59s:1m"
        seen = f"count_over_time((count {BY} (count_over_time({primary}[2m])))[{steps}])"
        enough = int(0.945 * minutes)
        energy = f"(max by (UUID) (max_over_time({ENERGY}[1m])))"
        moved = f"changes({energy}[{steps}]) >= {min(10, minutes // 3)}"
        moves = f"changes({energy}[4m59s:1m]) >= 1"
        limits: Mapping[str, str] = {
            f"{ENGINE}": f">= {THRESHOLD}",
            f"{DRAM}": ">= 0.005",
            f'{UTIL}{{GPU_I_ID=""}}': "> 0",
            f"{ENCODER}": "> 0",
        }
        text = f"({seen} >= {enough}) and on (UUID) ({moved}) and on (UUID) ({moves})"
        text += f" and on (UUID, GPU_I_ID) (count {BY} (count_over_time({primary}[2m])))"
        for series, limit in limits.items():
            window = f"{series}[{minutes}m]"
            for broken in (
                f"max_over_time({window}) {limit}",
                f"min_over_time({window}) < 0",
                f"sum_over_time({window}) != sum_over_time({window})",
            ):
                text += f" unless on (UUID, GPU_I_ID) ({broken})"
        return text

    def _devices(self, query: str, at: float) -> set[Device]:
        body = urlencode({"query": query, "time": f"{at:.3f}"}).encode()
        with urlopen(Request(f"{self.url}/api/v1/query", body), timeout=60) as answer:  # noqa: S310 - loopback
            rows = json.load(answer)["data"]["result"]
        return {(row["metric"]["UUID"], row["metric"].get("GPU_I_ID", "")) for row in rows}
