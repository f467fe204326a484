from __future__ import annotations

from dataclasses import replace

import pytest
from support.story import told_rules
from support.world import Told

from gpu_pruner.model.verdict import Reason
from gpu_pruner.model.workload import OwnerObject, OwnerRef, PodRecord, RootRef
from gpu_pruner.resolve.owners import Root, obstacle_of, root_of

NOTHING: frozenset[str] = frozenset()


def told(kind: str) -> tuple[PodRecord, dict[str, OwnerObject]]:
    workload = Told("serve", {"kind": kind})
    (pod,) = workload.pods
    return pod, {one.root.uid: one for one in workload.owners()}


def test_the_walk_climbs_to_the_top() -> None:
    pod, owners = told("Deployment")
    root = root_of(pod, owners, missing_kinds=NOTHING)
    assert root.ref == RootRef("Deployment", "team-a", "serve", "apps", "uid-serve-deployment")
    assert root.owner is owners["uid-serve-deployment"]
    assert root.obstacle is None


def test_a_kind_of_another_group_is_another_kind() -> None:
    pod, owners = told("StatefulSet")
    assert pod.owner is not None
    forged = replace(pod, owner=replace(pod.owner, group="apps.example.org"))
    root = root_of(forged, owners, missing_kinds=NOTHING)
    assert (root.owner, root.obstacle) == (None, Reason.UNKNOWN_OWNER)
    assert root.ref.group == "apps.example.org"


def test_a_borrowed_uid_leads_nowhere() -> None:
    """Whoever writes a pod can name any owner: name, kind and namespace have to fit the uid."""
    pod, owners = told("StatefulSet")
    assert pod.owner is not None
    for forged in (
        replace(pod, namespace="team-b"),
        replace(pod, owner=replace(pod.owner, name="other")),
        replace(pod, owner=replace(pod.owner, kind="ReplicaSet")),
    ):
        root = root_of(forged, owners, missing_kinds=NOTHING)
        assert (root.owner, root.obstacle) == (None, Reason.OWNER_MISSING)


def test_a_reference_that_no_controller_writes_leads_nowhere() -> None:
    pod, owners = told("Deployment")
    top = owners["uid-serve-deployment"].root
    straight = OwnerRef(top.group, top.kind, top.name, top.uid)
    root = root_of(replace(pod, owner=straight), owners, missing_kinds=NOTHING)
    assert (root.owner, root.obstacle) == (None, Reason.UNKNOWN_OWNER)
    server, servers = told("StatefulSet")
    below = servers["uid-serve-statefulset"]
    servers |= owners | {below.root.uid: replace(below, owner=straight)}
    root = root_of(server, servers, missing_kinds=NOTHING)
    assert (root.owner, root.obstacle) == (None, Reason.UNKNOWN_OWNER)


def test_owners_in_a_circle_end_the_walk() -> None:
    pod, owners = told("StatefulSet")
    (top,) = owners.values()
    me = OwnerRef("apps", "StatefulSet", "serve", top.root.uid)
    owners[top.root.uid] = replace(top, owner=me)
    assert root_of(pod, owners, missing_kinds=NOTHING).obstacle is Reason.UNKNOWN_OWNER


def test_an_endless_chain_ends_the_walk() -> None:
    pod, _ = told("StatefulSet")
    owners = {
        f"uid-{n}": OwnerObject(
            root=RootRef("StatefulSet", "team-a", f"s-{n}", "apps", f"uid-{n}"),
            owner=OwnerRef("apps", "StatefulSet", f"s-{n + 1}", f"uid-{n + 1}"),
        )
        for n in range(1000)
    }
    first = replace(pod, owner=OwnerRef("apps", "StatefulSet", "s-0", "uid-0"))
    root = root_of(first, owners, missing_kinds=NOTHING)
    assert root.obstacle is Reason.UNKNOWN_OWNER
    assert int(root.ref.name[2:]) < 20


def test_every_kind_that_can_be_paused_has_to_be_enabled() -> None:
    for kind in ("Deployment", "StatefulSet", "Notebook"):
        pod, owners = told(kind)
        root = root_of(pod, owners, missing_kinds=NOTHING)
        assert obstacle_of(root, told_rules()) is None
        others = {"Deployment", "StatefulSet", "Notebook"} - {kind}
        assert obstacle_of(root, told_rules({"enabled_kinds": others})) is Reason.KIND_DISABLED


def test_a_deployment_of_another_group_has_no_lever() -> None:
    ref = RootRef("Deployment", "team-a", "serve", "example.org", "uid")
    root = Root(ref, owner=OwnerObject(root=ref))
    assert obstacle_of(root, told_rules()) is Reason.NO_LEVER


def climbed(*chain: tuple[str, str]) -> Root:
    """Return the root of a pod below owners that are all there, from the pod upwards."""
    pod, _ = told("StatefulSet")
    refs = [
        RootRef(kind, "team-a", f"o-{place}", group, f"uid-{place}")
        for place, (group, kind) in enumerate(chain)
    ]
    above = [OwnerRef(one.group, one.kind, one.name, one.uid) for one in refs]
    owners = {
        one.uid: OwnerObject(root=one, owner=above[place + 1] if place + 1 < len(refs) else None)
        for place, one in enumerate(refs)
    }
    return root_of(replace(pod, owner=above[0]), owners, missing_kinds=NOTHING)


SET, LEADER = ("apps", "StatefulSet"), ("", "Pod")
GROUPS = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
REPLICAS, DEPLOYED = ("apps", "ReplicaSet"), ("apps", "Deployment")
KNATIVE = [("serving.knative.dev", kind) for kind in ("Revision", "Configuration", "Service")]
SERVICE = ("serving.kserve.io", "InferenceService")
MODEL = ("serving.kserve.io", "LLMInferenceService")
JOB, JOBS = ("batch", "Job"), ("jobset.x-k8s.io", "JobSet")


@pytest.mark.parametrize(
    "chain",
    [
        [SET, GROUPS],
        [SET, LEADER, SET, GROUPS],
        [SET, LEADER, SET, GROUPS, MODEL],
        [REPLICAS, DEPLOYED, MODEL],
        [REPLICAS, DEPLOYED, SERVICE],
        [REPLICAS, DEPLOYED, *KNATIVE, SERVICE],
        [REPLICAS, ("argoproj.io", "Rollout")],
        [SET, ("kubeflow.org", "Workspace")],
        [JOB, JOBS, ("trainer.kubeflow.org", "TrainJob")],
        [("kubeflow.org", "PyTorchJob")],
        [("ray.io", "RayCluster")],
    ],
    ids=lambda chain: "/".join(kind for _, kind in chain),
)
def test_the_walk_reaches_the_root_of_every_kind(chain: list[tuple[str, str]]) -> None:
    root = climbed(*chain)
    assert (root.ref.group, root.ref.kind) == chain[-1]
    assert root.obstacle is None
    allowed = told_rules({"warn_only_kinds": set()})
    assert obstacle_of(root, allowed) is None


@pytest.mark.parametrize(
    "chain",
    [
        [REPLICAS, DEPLOYED, *KNATIVE],
        [REPLICAS, DEPLOYED, KNATIVE[0]],
    ],
)
def test_what_knative_makes_has_no_lever_of_its_own(chain: list[tuple[str, str]]) -> None:
    assert obstacle_of(climbed(*chain), told_rules()) is Reason.NO_LEVER


@pytest.mark.parametrize(
    "chain",
    [
        [SET, GROUPS, ("disaggregatedset.x-k8s.io", "DisaggregatedSet")],
        [REPLICAS, DEPLOYED, ("nvidia.com", "DynamoGraphDeployment")],
        [("ray.io", "RayCluster"), ("ray.io", "RayJob")],
        [JOB, ("batch", "CronJob")],
    ],
)
def test_a_composite_parent_is_not_paused_in_parts(chain: list[tuple[str, str]]) -> None:
    root = climbed(*chain)
    assert (root.ref.kind, root.obstacle) == (chain[-1][1], Reason.UNKNOWN_OWNER)


def test_an_object_that_its_platform_does_not_stop_has_no_lever() -> None:
    ref = RootRef("InferenceService", "team-a", "llm", "serving.kserve.io", "uid")
    root = Root(ref, owner=OwnerObject(root=ref, unstoppable=True))
    assert obstacle_of(root, told_rules()) is Reason.NO_LEVER
