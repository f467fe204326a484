"""Objects become records without anything being made up."""

from __future__ import annotations

import json

import msgspec
import pytest

from gpu_pruner.kube.resources import DEPLOYMENTS, NOTEBOOKS, REPLICASETS, STATEFULSETS, Resource
from gpu_pruner.kube.wire import Bare, Meta, Node, Owner, Pod
from gpu_pruner.model.annotations import EXEMPT, NOTEBOOK_LOCK, NOTEBOOK_STOPPED
from gpu_pruner.model.units import rfc3339
from gpu_pruner.model.workload import OwnerObject, OwnerRef, PodPhase
from gpu_pruner.observe import cluster_records as records
from gpu_pruner.observe import owner_records

NOON = 1_769_860_800.0
GPU = {"resources": {"limits": {"nvidia.com/gpu": "2"}}}


def meta(**more: object) -> dict[str, object]:
    return {
        "name": "one",
        "namespace": "team-a",
        "uid": "u-1",
        "resourceVersion": "7",
        "creationTimestamp": rfc3339(NOON),
        **more,
    }


def pod(**parts: object) -> Pod:
    body = {"metadata": meta(), "spec": {"containers": [GPU]}, **parts}
    return msgspec.json.decode(json.dumps(body), type=Pod)


def owner(resource: Resource = DEPLOYMENTS, **parts: object) -> OwnerObject:
    body = {"metadata": meta(), **parts}
    return owner_records.owner_object(msgspec.json.decode(json.dumps(body), type=Owner), resource)


def test_a_running_pod() -> None:
    controller = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u-rs"}
    other = {"apiVersion": "other.io/v1", "kind": "Group", "name": "g", "uid": "u-g"}
    found = records.pod_record(
        pod(
            metadata=meta(
                ownerReferences=[other, {**controller, "controller": True}],
                labels={EXEMPT: "true", "app": "x"},
                annotations={EXEMPT: "false", "other.io/x": "y"},
            ),
            spec={"nodeName": "node-1", "containers": [GPU], "unknown": {"deep": []}},
            status={
                "phase": "Running",
                "conditions": [
                    {"type": "Initialized", "status": "True"},
                    {"type": "Ready", "status": "True", "lastTransitionTime": rfc3339(NOON + 60)},
                ],
                "containerStatuses": [
                    {"state": {"running": {"startedAt": rfc3339(NOON + 20)}}},
                    {"state": {"running": {"startedAt": rfc3339(NOON + 50)}}},
                    {"state": {"waiting": {}}},
                ],
            },
        )
    )
    assert found is not None
    assert found.phase is PodPhase.RUNNING
    assert found.node == "node-1"
    assert found.requests == {"nvidia.com/gpu": 2}
    assert found.owner == OwnerRef("apps", "ReplicaSet", "rs", "u-rs")
    assert found.created_at == NOON
    assert found.ready_since == NOON + 60
    assert found.containers_started_at == NOON + 50
    assert not found.terminating
    assert found.labels == {EXEMPT: "true"}
    assert found.annotations == {EXEMPT: "false"}


def test_a_pod_without_gpus_is_left_out() -> None:
    assert records.pod_record(pod(spec={"containers": [{"resources": {}}]})) is None
    assert records.pod_record(pod(spec={"containers": None, "initContainers": None})) is None


@pytest.mark.parametrize(
    "status",
    [
        None,
        {},
        {"phase": "Running", "conditions": None, "containerStatuses": None},
        {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]},
        {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        {
            "phase": "Running",
            "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-31 12:00"}
            ],
        },
    ],
    ids=["none", "empty", "nulls", "not ready", "no time", "odd time"],
)
def test_a_pod_that_does_not_say_since_when_it_is_ready_is_not_ready(status: object) -> None:
    found = records.pod_record(pod(status=status))
    assert found is not None
    assert found.ready_since is None
    assert found.containers_started_at is None


@pytest.mark.parametrize("phase", [None, "", "Dreaming"])
def test_a_phase_that_nobody_knows_is_unknown(phase: str | None) -> None:
    found = records.pod_record(pod(status={"phase": phase}))
    assert found is not None
    assert found.phase is PodPhase.UNKNOWN


def test_a_pod_without_a_creation_time_is_as_young_as_can_be() -> None:
    found = records.pod_record(pod(metadata=meta(creationTimestamp=None)))
    assert found is not None
    assert found.created_at > NOON + 1e9
    assert rfc3339(found.created_at).startswith("9999")


def test_a_pod_that_is_being_deleted_is_terminating() -> None:
    found = records.pod_record(pod(metadata=meta(deletionTimestamp=rfc3339(NOON))))
    assert found is not None
    assert found.terminating


def test_a_pod_that_cannot_be_read_holds_a_gpu_that_nobody_will_find() -> None:
    for found in (
        records.unreadable_pod(Meta(name="one", namespace="team-a", uid="u-1")),
        records.pod_record(Pod(metadata=Meta(name="one", namespace="team-a", uid="u-1"))),
    ):
        assert found is not None
        assert found.gpus == 1
        assert found.phase is PodPhase.UNKNOWN
        assert (found.uid, found.namespace, found.name) == ("u-1", "team-a", "one")


def test_a_node_with_its_gpus_and_how_they_are_shared() -> None:
    body = {
        "metadata": {
            "name": "node-1",
            "labels": {
                "nvidia.com/gpu.sharing-strategy": "time-slicing",
                "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
            },
        },
        "status": {
            "allocatable": {"nvidia.com/gpu": "8", "cpu": "64"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    found = records.node_record(msgspec.json.decode(json.dumps(body), type=Node))
    assert found.ready
    assert found.gpus == {"nvidia.com/gpu": 8}
    assert (found.sharing, found.product) == ("time-slicing", "NVIDIA-H100-80GB-HBM3")


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_a_node_is_ready_only_where_it_says_so(status: str) -> None:
    body = {
        "metadata": {"name": "n"},
        "status": {"conditions": [{"type": "Ready", "status": status}]},
    }
    assert not records.node_record(msgspec.json.decode(json.dumps(body), type=Node)).ready
    assert not records.node_record(Node(metadata=Meta(name="n"))).ready
    assert not records.unreadable_node(Meta(name="n")).ready


def test_a_namespace_keeps_our_words_only() -> None:
    one = Bare(metadata=Meta(name="team-a", labels={EXEMPT: "true", "x": "y"}))
    assert records.namespace_record(one).labels == {EXEMPT: "true"}
    assert records.namespace_record(one).annotations == {}


def test_who_made_a_workbench_is_read_from_what_its_platform_writes() -> None:
    made = {
        "opendatahub.io/username": "alice",
        "notebooks.kubeflow.org/creator": "alice@example.com",
        "notebooks.kubeflow.org/created-by": "alice@example.com",
    }
    others = {"owner": "bob", "notebooks.kubeflow.org/updated-by": "bob"}
    found = owner(NOTEBOOKS, metadata=meta(annotations=made | others), status={})
    assert found.annotations == made


def test_whose_profile_a_namespace_is() -> None:
    notes = {"owner": "alice@example.com", "opendatahub.io/username": "bob"}
    one = Bare(metadata=Meta(name="team-a", annotations=notes, labels={"owner": "bob"}))
    assert records.namespace_record(one).annotations == {"owner": "alice@example.com"}
    assert records.namespace_record(one).labels == {}


def test_a_deployment_with_its_counts() -> None:
    found = owner(
        metadata=meta(generation=4),
        spec={"replicas": 3},
        status={"observedGeneration": 3, "replicas": 3, "readyReplicas": 2, "updatedReplicas": 1},
    )
    assert found.root.ref == "deployment/team-a/one"
    assert (found.root.group, found.root.uid) == ("apps", "u-1")
    assert found.resource_version == "7"
    assert (found.generation, found.observed_generation) == (4, 3)
    assert (found.desired, found.observed, found.ready, found.updated) == (3, 3, 2, 1)
    assert not found.halted


def test_counts_that_the_server_omits_are_zero_and_an_absent_size_is_one() -> None:
    found = owner(spec={}, status={"observedGeneration": 1})
    assert (found.desired, found.observed, found.ready, found.updated) == (1, 0, 0, 0)


def test_without_a_status_nothing_was_counted() -> None:
    found = owner(spec={"replicas": 0})
    assert (found.observed, found.ready, found.updated) == (None, None, None)
    assert found.observed_generation == 0
    assert found.halted


def test_without_a_spec_no_size_is_claimed() -> None:
    assert owner(status={}).desired is None
    assert not owner(status={}).halted


def test_a_replicaset_has_no_rollout() -> None:
    found = owner(REPLICASETS, spec={"replicas": 2}, status={"replicas": 2})
    assert found.updated is None
    assert found.observed == 2


def test_a_statefulset_that_deletes_its_claims_on_scaling_says_so() -> None:
    policy = {"whenScaled": "Delete", "whenDeleted": "Retain"}
    spec = {"replicas": 1, "persistentVolumeClaimRetentionPolicy": policy}
    assert owner(STATEFULSETS, spec=spec).deletes_volumes
    policy["whenScaled"] = "Retain"
    assert not owner(STATEFULSETS, spec=spec).deletes_volumes
    assert not owner(STATEFULSETS, spec={"replicas": 1}).deletes_volumes


@pytest.mark.parametrize(
    ("stop", "halted"),
    [(None, False), (rfc3339(NOON), True), ("", True), (NOTEBOOK_LOCK, False)],
)
def test_a_notebook_is_halted_by_its_annotation_and_not_by_the_start_up_lock(
    stop: str | None, *, halted: bool
) -> None:
    annotations = {} if stop is None else {NOTEBOOK_STOPPED: stop}
    found = owner(NOTEBOOKS, metadata=meta(annotations=annotations), status={"readyReplicas": 1})
    assert found.halted is halted
    assert found.annotations == annotations
    assert (found.desired, found.observed, found.updated) == (None, None, None)
    assert found.observed_generation is None
    assert found.ready == 1


def test_only_a_notebook_is_halted_by_that_annotation() -> None:
    words = {NOTEBOOK_STOPPED: rfc3339(NOON)}
    assert not owner(metadata=meta(annotations=words), spec={"replicas": 1}).halted


def managed(manager: str, fields: str, *, at: str = "2026-01-01T10:00:00Z") -> dict[str, object]:
    return {
        "manager": manager,
        "operation": "Update",
        "time": at,
        "fieldsType": "FieldsV1",
        "fieldsV1": json.loads(fields),
    }


SIZE = '{"f:spec":{".":{},"f:replicas":{}}}'
COUNTED = '{"f:status":{"f:replicas":{},"f:readyReplicas":{}}}'


@pytest.mark.parametrize(
    ("entries", "manager"),
    [
        ([], ""),
        ([managed("kubectl", SIZE)], "kubectl"),
        ([managed("kube-controller-manager", COUNTED)], ""),
        ([managed("argocd-controller", SIZE, at="2026-01-01T12:00:00Z"),
          managed("gpu-pruner", SIZE, at="2026-01-01T11:00:00Z"),
          managed("kubectl", '{"f:spec":{"f:template":{}}}', at="2026-01-01T13:00:00Z")],
         "argocd-controller"),
    ],
)  # fmt: skip
def test_who_wrote_the_size_last_is_told(entries: list[dict[str, object]], manager: str) -> None:
    body = {"metadata": {"name": "d", "managedFields": entries}, "spec": {"replicas": 1}}
    owner = msgspec.json.decode(json.dumps(body), type=Owner)
    assert owner_records.owner_object(owner, DEPLOYMENTS).sized_by == manager
    assert owner_records.owner_object(owner, NOTEBOOKS).sized_by == ""


@pytest.mark.parametrize(
    ("labels", "sharing"),
    [
        ({}, ""),
        ({"nvidia.com/gpu.sharing-strategy": "none"}, ""),
        ({"nvidia.com/gpu.sharing-strategy": "mps"}, "mps"),
        ({"nvidia.com/gpu.product": "NVIDIA-L4-SHARED"}, "time-slicing"),
        ({"nvidia.com/vgpu.present": "true", "nvidia.com/gpu.product": "NVIDIA-A40"}, "vgpu"),
    ],
)
def test_how_a_node_shares_its_gpus_is_told(labels: dict[str, str], sharing: str) -> None:
    node = Node(metadata=Meta(name="n", labels=labels))
    assert records.node_record(node).sharing == sharing
