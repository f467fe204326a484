"""What a cycle costs at 1,000 GPUs, 2,000 pods and 300 roots, everything on the same machine.

Times are printed, not asserted: they are the machine's. What is asked of the API server and what
memory is held are asserted, because these are ours.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.controller import Controller
from support.lab import Lab, require_lab
from support.product import OURS, Product, a_world

from gpu_pruner.sim.tree import elements, number, text
from gpu_pruner.sim.world import Behaviour, Node, Workload

pytestmark = [
    pytest.mark.lab,
    pytest.mark.prometheus,
    pytest.mark.long,
    pytest.mark.timeout(1800),
]

BUSY = Behaviour(activity=((0.0, 0.6),))
NODES = tuple(Node(name=f"node-{one}") for one in range(125))
CYCLE_SECONDS = 10
STEADY_CYCLES = 12
MOST_REQUESTS_PER_SECOND = 5.0
MOST_BYTES = 200_000_000


def workloads() -> Iterator[Workload]:
    """Yield 100 roots with 10 GPU pods each, a tenth of them idle, and 200 with 5 without GPUs."""
    for one in range(100):
        behaviour = Behaviour() if one % 10 == 0 else BUSY
        team = f"team-{one % 10}"
        yield Workload(
            kind="Deployment",
            namespace=team,
            name=f"train-{one}",
            replicas=10,
            behaviour=behaviour,
        )
    for one in range(200):
        team = f"team-{one % 10}"
        name = f"web-{one}"
        yield Workload(kind="Deployment", namespace=team, name=name, replicas=5, gpus=0)


def test_a_large_cluster_is_watched_with_little(tmp_path: Path) -> None:
    with Lab(tmp_path / "lab", require_lab()) as lab:
        for one in range(10):
            lab.kubectl("create", "namespace", f"team-{one}")
        world = a_world(*workloads(), nodes=NODES)
        with (
            Product(lab, world, tmp_path, scrape_interval="30s", for_one=True) as product,
            product.controller("-c", str(CYCLE_SECONDS), mode="dry-run") as controller,
        ):
            watch(product, controller)


def watch(product: Product, controller: Controller) -> None:
    """Let it settle, then look at some cycles."""

    def cycle() -> int:
        return number(controller.get("/api/v1/workloads"), "cycle", "number")

    def settled() -> bool:
        rows = elements(controller.get("/api/v1/workloads"), "workloads")
        return sum(text(one, "state") == "WouldPause" for one in rows) == 10

    controller.until(settled, seconds=600)
    product.lab.audited()
    product.lab.audit.mark()
    begin, last = time.monotonic(), cycle() + STEADY_CYCLES
    controller.until(lambda: cycle() >= last, seconds=600)
    seconds = time.monotonic() - begin
    asked = [one for one in product.lab.audited(OURS) if one.stage == "ResponseComplete"]
    lists = [one for one in asked if one.verb == "list"]
    peak = controller.peak_memory_bytes()
    buckets = [one for one in controller.metrics().splitlines() if "cycle_duration" in one]
    print(  # noqa: T201 - the figures are what it is for
        f"\n{len(asked) / seconds:.2f} requests/s in {seconds:.0f} s, {len(lists)} lists;"
        f" peak {peak / 1e6:.0f} MB",
        *(one for one in buckets if not one.startswith("#")),
        sep="\n",
    )
    assert len(asked) / seconds <= MOST_REQUESTS_PER_SECOND
    assert [one.request_uri for one in lists if "limit=" not in one.request_uri] == []
    assert peak <= MOST_BYTES
