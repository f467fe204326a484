"""The cluster that the documentation speaks of, so that its commands can be typed as they are.

Real control plane, real Prometheus with hours of history. In it: `deployment/team-a/train`, four
idle replicas; `deployment/team-a/finetune`, one of whose two GPUs is busy;
`statefulset/team-a/workers`, of whose pods one is busy; `notebook/team-a/notebook-1`, idle. One
exporter fell silent (node-c), and another has no profiling fields (node-d).
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Self

from support.exporters import Exporters
from support.lever_objects import NOTEBOOK
from support.product import Product, Thing, a_world, until
from support.prometheus import PrometheusServer, backfill

from gpu_pruner.sim.history import TARGET_LABELS, Scraping
from gpu_pruner.sim.tree import mapping, text
from gpu_pruner.sim.world import Behaviour, Node, Override, Workload, World

CLUSTER = "east"
"""What every series says of where it is from."""
SILENT, UNPROFILED = "node-c", "node-d"
HISTORY_SECONDS = 9000.0
"""More than a cold start looks back: two doubled windows, and three minutes."""
SILENT_SECONDS = 1800.0
"""Since when an exporter does not answer."""
SCRAPE_SECONDS = 15.0
_BUSY = Behaviour(activity=((0.0, 0.62),))


def world() -> World:
    """Return nodes and workloads."""
    return a_world(
        Workload(kind="Deployment", namespace="team-a", name="train", replicas=4, node="node-a"),
        Workload(
            kind="Deployment",
            namespace="team-a",
            name="finetune",
            gpus=2,
            node="node-b",
            overrides=(Override(gpu=0, behaviour=_BUSY),),
        ),
        Workload(
            kind="StatefulSet",
            namespace="team-a",
            name="workers",
            replicas=2,
            node="node-b",
            overrides=(Override(pod=1, behaviour=_BUSY),),
        ),
        Workload(kind="Deployment", namespace="team-b", name="evaluate", node=SILENT),
        Workload(kind="Deployment", namespace="team-b", name="serve", node=UNPROFILED),
        nodes=(
            Node(name="node-a"),
            Node(name="node-b"),
            Node(name=SILENT, gpus=4, model="NVIDIA A100-SXM4-80GB"),
            Node(name=UNPROFILED, gpus=2, model="NVIDIA L40S"),
        ),
    )


NOTEBOOK_1 = Thing(
    NOTEBOOK
    | {"metadata": mapping(NOTEBOOK, "metadata") | {"namespace": "team-a", "name": "notebook-1"}},
    pods=1,
)


@dataclass
class Documented(Product):
    """A context manager around it."""

    exporters: str = ""
    """host:port of the exporters, `/exporters/<node>/metrics` each."""

    def __enter__(self) -> Self:
        for name in self.namespaces:
            self.lab.kubectl("create", "namespace", name)
        return super().__enter__()

    def _make_things(self) -> None:
        """Let the scheduler put the notebook where the pages show it."""
        others = [node.name for node in self.world.nodes if node.name != "node-a"]
        self.lab.kubectl("cordon", *others)
        super()._make_things()
        pod = "/api/v1/namespaces/team-a/pods/notebook-1-0"
        until(lambda: text(self.get(pod), "spec", "nodeName"))
        self.lab.kubectl("uncordon", *others)

    def _exposition(self, node: str) -> str:
        if node == SILENT:
            raise KeyError(node)
        told = self.kubelet.exposition(node)
        return re.sub(r"(?m)^.*DCGM_FI_PROF_.*\n", "", told) if node == UNPROFILED else told

    def _history(self, past: Scraping) -> list[str]:
        told = self.kubelet.history(past).replace('Hostname="', f'cluster="{CLUSTER}",Hostname="')
        return told.splitlines(keepends=True)

    def _telemetry(self) -> str:
        exporters = self._stack.enter_context(Exporters(self._exposition))
        self.exporters = exporters.address
        now = time.time()
        past = Scraping(start=now - HISTORY_SECONDS, end=now - 1, interval_seconds=SCRAPE_SECONDS)
        told = "".join(line for line in self._history(past) if _was_scraped(line, now))
        data = backfill(told, self.directory)
        targets = [
            {
                "targets": [exporters.address],
                "labels": {
                    "cluster": CLUSTER,
                    "__metrics_path__": f"/exporters/{node.name}/metrics",
                    **{key: label.format(node=node.name) for key, label in TARGET_LABELS.items()},
                },
            }
            for node in self.world.nodes
        ]
        server = PrometheusServer(
            self.directory / "prometheus",
            data=data,
            static_configs=tuple(targets),
            scrape_interval=f"{SCRAPE_SECONDS:.0f}s",
        )
        return self._stack.enter_context(server).url


def _was_scraped(line: str, now: float) -> bool:
    if f'Hostname="{SILENT}"' in line:
        return float(line.rsplit(" ", 1)[1]) < now - SILENT_SECONDS
    return not (f'Hostname="{UNPROFILED}"' in line and "DCGM_FI_PROF_" in line)
