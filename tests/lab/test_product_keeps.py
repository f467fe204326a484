"""What must not be paused, in a real cluster: every GPU here is idle, or was, and nobody says keep.

One run for all, beside a workload that *is* paused in it, so that nobody was spared by chance.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest
from support.audit import Entry
from support.lab import Lab
from support.product import Product, a_world, until

from gpu_pruner.sim.tree import JsonObject, elements, number, text
from gpu_pruner.sim.world import Behaviour, Node, Override, Workload

pytestmark = [pytest.mark.lab, pytest.mark.prometheus, pytest.mark.timeout(300)]

BUSY = Behaviour(activity=((0.0, 0.6),))
NODES = (Node(name="node-1"), Node(name="node-2"), Node(name="node-3", gpus=1))

KEPT = {
    "deployment/busy-gpu": {"GpuActive"},
    "statefulset/busy-replica": {"GpuActive"},
    "deployment/rollout": {"RolloutInProgress", "PodNotReady"},
    "deployment/pending-sibling": {"PodNotReady"},
    "statefulset/recreated": {"TooYoung"},
    "statefulset/deletes-volumes": {"DeletesVolumes"},
    "configmap/operated": {"UnknownOwner"},
    "pod/bare": {"BarePod"},
    "daemonset/everywhere": {"DaemonSet"},
}
"""Root's kind and name, and in which words the product may say why."""


@dataclass(frozen=True)
class Run:
    """What there was to see when it was over."""

    told: Mapping[str, JsonObject]
    """By kind and name."""
    before: Mapping[str, set[str]]
    """uids of pods, by name of the workload."""
    after: Mapping[str, set[str]]
    workload_writes: tuple[Entry, ...]


def workloads(team: str) -> Iterator[Workload]:
    for kind, name in [
        ("Deployment", "control"),
        ("StatefulSet", "recreated"),
        ("StatefulSet", "deletes-volumes"),
        ("StatefulSet", "operated"),
        ("Pod", "bare"),
        ("DaemonSet", "everywhere"),
    ]:
        yield Workload(kind=kind, namespace=team, name=name, node="node-1")
    yield Workload(kind="Deployment", namespace=team, name="rollout", replicas=2, node="node-2")
    yield Workload(kind="Deployment", namespace=team, name="pending-sibling", node="node-3")
    busy_gpu = (Override(gpu=1, behaviour=BUSY),)
    yield Workload(
        kind="Deployment",
        namespace=team,
        name="busy-gpu",
        gpus=2,
        node="node-2",
        overrides=busy_gpu,
    )
    busy_replica = (Override(pod=1, behaviour=BUSY),)
    yield Workload(
        kind="StatefulSet",
        namespace=team,
        name="busy-replica",
        replicas=2,
        node="node-2",
        overrides=busy_replica,
    )


def complicate(product: Product, team: str) -> None:
    """Let everything happen that keeps a workload, and wait for it."""
    lab = product.lab
    policy = {"spec": {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}}
    how = ("-n", team, "--type=merge", "-p")
    lab.kubectl("patch", "statefulset/deletes-volumes", *how, json.dumps(policy))
    lab.kubectl("create", "configmap", "operated", "-n", team)
    uid = lab.kubectl("get", "configmap/operated", "-n", team, "-o", "jsonpath={.metadata.uid}")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "operated", "uid": uid}
    owned = {"metadata": {"ownerReferences": [owner | {"controller": True}]}}
    lab.kubectl("patch", "statefulset/operated", *how, json.dumps(owned))
    lab.kubectl("delete", "pod/recreated-0", "-n", team)
    until(lambda: product.ready(team) == product.wanted)
    product.kubelet.pace.ready_seconds = 600
    lab.kubectl("set", "env", "deployment/rollout", "-n", team, "VERSION=2")
    lab.kubectl("scale", "deployment/pending-sibling", "-n", team, "--replicas=2")
    until(lambda: len(product.pods(team)) == product.wanted + 2)


def uids(product: Product, team: str) -> dict[str, set[str]]:
    pods = product.pods(team)
    return {
        one.name: {
            text(pod, "metadata", "uid")
            for pod in pods
            if text(pod, "metadata", "labels", "app") == one.name
        }
        for one in product.world.workloads
    }


@pytest.fixture(scope="module")
def run(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Run:
    team = lab.namespace()
    world = a_world(*workloads(team), nodes=NODES)
    with Product(lab, world, tmp_path_factory.mktemp("keeps")) as product:
        complicate(product, team)
        lab.audit.mark()
        before = uids(product, team)
        with product.controller() as controller:
            controller.until_told(f"deployment/{team}/control", state="Paused")
            # Work in the very minute in which a pod was made might have been another's.
            for busy in ("deployment/{}/busy-gpu", "statefulset/{}/busy-replica"):
                controller.until_told(busy.format(team), reason="GpuActive")
            last = number(controller.get("/api/v1/workloads"), "cycle", "number") + 5
            controller.until(
                lambda: number(controller.get("/api/v1/workloads"), "cycle", "number") >= last
            )
            rows = elements(controller.get("/api/v1/workloads"), "workloads")
        told = {text(one, "ref").replace(f"/{team}/", "/"): one for one in rows}
        return Run(told, before, uids(product, team), tuple(product.workload_writes()))


def test_the_control_was_paused(run: Run) -> None:
    assert [one.object_ref.name for one in run.workload_writes] == ["control"]
    assert run.before["control"]
    assert not run.after["control"]


@pytest.mark.parametrize("kept", KEPT)
def test_it_is_kept_and_told_why(run: Run, kept: str) -> None:
    name = kept.partition("/")[2]

    assert text(run.told[kept], "reason") in KEPT[kept], run.told[kept]
    assert text(run.told[kept], "state") == "Watching"
    assert [one.told for one in run.workload_writes if one.object_ref.name.startswith(name)] == []
    assert run.before[name]
    assert run.after[name] == run.before[name]
