"""Owners of every kind, and what owns their size, as the API server sends them."""

from __future__ import annotations

import json
from dataclasses import replace

import msgspec
import pytest

from gpu_pruner.kube.halting import is_paused_by_us
from gpu_pruner.kube.resources import (
    DEPLOYMENTS,
    INFERENCESERVICES,
    JOBS,
    KUEUE_WORKLOADS,
    LEADERWORKERSETS,
    LLMINFERENCESERVICES,
    NOTEBOOKS,
    PYTORCHJOBS,
    ROLLOUTS,
    SCALEDOBJECTS,
    WORKSPACES,
    Resource,
)
from gpu_pruner.kube.wire import Owner, Pod
from gpu_pruner.model.annotations import (
    KEDA_PAUSED_REPLICAS,
    KSERVE_FROZEN,
    KSERVE_STOP,
    NOTEBOOK_STOPPED,
    PAUSED,
)
from gpu_pruner.model.workload import GovernorRecord, OwnerObject, OwnerRef, RootRef
from gpu_pruner.observe import cluster_records, owner_records
from gpu_pruner.observe.governors import with_governors

GPU_TEMPLATE = {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "8"}}}]}}
CPU_TEMPLATE = {"spec": {"containers": [{"name": "router"}]}}
STOPPED = {"type": "Stopped", "status": "False"}


def wire(**body: object) -> Owner:
    meta = {"name": "one", "namespace": "team-a", "uid": "u-1", "generation": 2}
    given = body.pop("metadata", {})
    assert isinstance(given, dict)
    return msgspec.json.decode(json.dumps({"metadata": meta | given, **body}), type=Owner)


def owner(resource: Resource, **body: object) -> OwnerObject:
    return owner_records.owner_object(wire(**body), resource)


def test_a_rollout_writes_the_generation_that_it_has_seen_as_text() -> None:
    counts = {"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2}
    seen = owner(ROLLOUTS, spec={"replicas": 2}, status=counts | {"observedGeneration": "2"})
    assert (seen.generation, seen.observed_generation, seen.updated) == (2, 2, 2)
    odd = owner(ROLLOUTS, spec={"replicas": 2}, status=counts | {"observedGeneration": "5f8c"})
    assert odd.observed_generation == 0


@pytest.mark.parametrize(
    ("template", "pods"),
    [
        ({"size": 4, "workerTemplate": GPU_TEMPLATE}, 4),
        ({"workerTemplate": GPU_TEMPLATE}, 1),
        ({"size": 4, "workerTemplate": GPU_TEMPLATE, "leaderTemplate": CPU_TEMPLATE}, 3),
        ({"size": 4, "workerTemplate": CPU_TEMPLATE, "leaderTemplate": GPU_TEMPLATE}, 1),
        ({"size": 4}, None),
    ],
)
def test_a_group_counts_its_gpu_pods(template: dict[str, object], pods: int | None) -> None:
    spec = {"replicas": 2, "leaderWorkerTemplate": template}
    found = owner(LEADERWORKERSETS, spec=spec, status={"replicas": 2, "readyReplicas": 2})
    assert found.pods_per_replica == pods
    assert (found.desired, found.observed, found.observed_generation) == (2, 2, None)


@pytest.mark.parametrize("when", ["whenScaled", "whenDeleted"])
def test_a_group_goes_with_its_leader_and_its_claims_with_it(when: str) -> None:
    policy = {when: "Delete"}
    template = {"workerTemplate": GPU_TEMPLATE, "persistentVolumeClaimRetentionPolicy": policy}
    assert owner(LEADERWORKERSETS, spec={"leaderWorkerTemplate": template}).deletes_volumes


@pytest.mark.parametrize(
    ("conditions", "mode", "annotations", "unstoppable"),
    [
        ([STOPPED], "Standard", {}, False),
        ([STOPPED], "Knative", {}, False),
        ([], "RawDeployment", {}, True),
        ([], "Serverless", {}, False),
        ([], "ModelMesh", {}, True),
        ([], None, {}, True),
        ([STOPPED], "Standard", {KSERVE_FROZEN: "true"}, True),
        ([STOPPED], "Standard", {KSERVE_FROZEN: "false"}, False),
    ],
)
def test_an_inference_service_is_stoppable_where_its_controller_would_stop_it(
    conditions: list[object], mode: str | None, annotations: dict[str, str], *, unstoppable: bool
) -> None:
    found = owner(
        INFERENCESERVICES,
        metadata={"annotations": annotations},
        spec={"predictor": {"minReplicas": 1}},
        status={"conditions": conditions, "deploymentMode": mode},
    )
    assert found.unstoppable is unstoppable
    assert not found.halted
    assert (found.desired, found.observed_generation) == (None, None)


@pytest.mark.parametrize("resource", [INFERENCESERVICES, LLMINFERENCESERVICES])
@pytest.mark.parametrize(("value", "halted"), [("true", True), ("True", True), ("false", False)])
def test_a_service_is_halted_as_kserve_reads_it(
    resource: Resource, value: str, *, halted: bool
) -> None:
    found = owner(resource, metadata={"annotations": {KSERVE_STOP: value}}, spec={"replicas": 2})
    assert found.halted is halted


def test_zero_is_a_pause_of_a_service_only_with_our_record() -> None:
    spec = {"predictor": {"minReplicas": 0}}
    assert not owner(INFERENCESERVICES, spec=spec).halted
    assert owner(INFERENCESERVICES, metadata={"annotations": {PAUSED: "{}"}}, spec=spec).halted


@pytest.mark.parametrize(
    ("resource", "spec"),
    [
        (WORKSPACES, {"paused": True}),
        (JOBS, {"suspend": True}),
        (PYTORCHJOBS, {"runPolicy": {"suspend": True}}),
    ],
)
def test_a_switch_halts(resource: Resource, spec: dict[str, object]) -> None:
    assert owner(resource, spec=spec).halted
    assert not owner(resource, spec={}).halted
    assert not owner(LEADERWORKERSETS, spec=spec).halted


def pod(**meta: object) -> Pod:
    above = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "u-s"}
    body = {
        "metadata": {
            "name": "s-0",
            "namespace": "team-a",
            "uid": "u-0",
            "ownerReferences": [above | {"controller": True}],
            **meta,
        },
        "spec": CPU_TEMPLATE["spec"],
    }
    return msgspec.json.decode(json.dumps(body), type=Pod)


def test_a_leader_without_a_gpu_is_kept_for_its_workers() -> None:
    label = {"leaderworkerset.sigs.k8s.io/name": "s"}
    record = cluster_records.pod_record(pod(labels=label))
    assert record is not None
    assert (record.gpus, record.leads) == (0, True)
    leader = owner_records.leader(record)
    assert leader.root == RootRef("Pod", "team-a", "s-0", "", "u-0")
    assert leader.owner == OwnerRef("apps", "StatefulSet", "s", "u-s")
    assert cluster_records.pod_record(pod()) is None
    assert cluster_records.pod_record(pod(labels=label, ownerReferences=[])) is None


def scaled_object(**spec: object) -> GovernorRecord | None:
    target = {"scaleTargetRef": {"name": "server"} | spec}
    notes = {KEDA_PAUSED_REPLICAS: "0", PAUSED: "{}"}
    return owner_records.governor(wire(metadata={"annotations": notes}, spec=target), SCALEDOBJECTS)


def test_a_scaled_object_governs_its_target() -> None:
    found = scaled_object()
    assert found is not None
    assert found.target == RootRef("Deployment", "team-a", "server", "apps")
    assert (found.halted, found.record) == (True, "{}")
    other = scaled_object(kind="Rollout", apiVersion="argoproj.io/v1alpha1")
    assert other is not None
    assert (other.target.kind, other.target.group) == ("Rollout", "argoproj.io")
    assert scaled_object(name="") is None


def admission(kind: str, api_version: str) -> GovernorRecord | None:
    above = {"apiVersion": api_version, "kind": kind, "name": "train", "uid": "u-j"}
    meta = {"ownerReferences": [above | {"controller": True}]}
    return owner_records.governor(wire(metadata=meta, spec={"active": False}), KUEUE_WORKLOADS)


def test_a_kueue_workload_governs_the_job_that_owns_it_and_nothing_else() -> None:
    found = admission("Job", "batch/v1")
    assert found is not None
    assert found.target == RootRef("Job", "team-a", "train", "batch", "u-j")
    assert found.halted
    assert admission("StatefulSet", "apps/v1") is None
    assert admission("Pod", "v1") is None
    assert admission("Job", "example.org/v1") is None


RECORDED = '"f:metadata": {"f:annotations": {"f:gpu-pruner.io/paused": {}}}'
STOPPED_BY = {
    "Deployment": (DEPLOYMENTS, {"spec": {"replicas": 0}}, '"f:spec": {"f:replicas": {}}'),
    "Job": (JOBS, {"spec": {"suspend": True}}, '"f:spec": {"f:suspend": {}}'),
    "PyTorchJob": (
        PYTORCHJOBS,
        {"spec": {"runPolicy": {"suspend": True}}},
        '"f:spec": {"f:runPolicy": {"f:suspend": {}}}',
    ),
    "Workspace": (WORKSPACES, {"spec": {"paused": True}}, '"f:spec": {"f:paused": {}}'),
    "drained": (
        INFERENCESERVICES,
        {"spec": {"predictor": {"minReplicas": 0}}},
        '"f:spec": {"f:predictor": {"f:minReplicas": {}}}',
    ),
    "Workload": (KUEUE_WORKLOADS, {"spec": {"active": False}}, '"f:spec": {"f:active": {}}'),
}
"""By kind: what stops it, and the fields that this names."""
STOPPING_NOTES = {
    "Notebook": (NOTEBOOKS, NOTEBOOK_STOPPED, "2026-01-31T12:00:00Z"),
    "InferenceService": (INFERENCESERVICES, KSERVE_STOP, "true"),
    "ScaledObject": (SCALEDOBJECTS, KEDA_PAUSED_REPLICAS, "0"),
}


def entry(manager: str, *fields: str) -> dict[str, object]:
    told = json.loads("{" + ", ".join(fields) + "}")
    return {"manager": manager, "operation": "Update", "fieldsV1": told}


@pytest.mark.parametrize("kind", STOPPED_BY)
def test_a_stop_is_our_pause_while_we_alone_wrote_it_and_its_record(kind: str) -> None:
    resource, body, stop = STOPPED_BY[kind]

    def ours(*entries: dict[str, object], **changes: object) -> bool:
        meta = {"annotations": {PAUSED: "{}"}, "managedFields": list(entries)}
        return is_paused_by_us(wire(metadata=meta, **body | changes), resource)

    assert ours(entry("gpu-pruner", RECORDED, stop), entry("kubectl", '"f:spec": {"f:other": {}}'))
    assert not ours()
    assert not ours(entry("gpu-pruner", RECORDED, stop), spec={"replicas": 1})
    assert not ours(entry("gpu-pruner", RECORDED), entry("kubectl", stop))
    assert not ours(entry("gpu-pruner", stop), entry("kubectl-annotate", RECORDED))
    assert not ours(entry("gpu-pruner", RECORDED, stop), entry("argocd-controller", RECORDED))
    assert not ours(entry("gpu-pruner", RECORDED, stop), entry("argocd-controller", stop))
    assert not ours(entry("kubectl", RECORDED, stop))


@pytest.mark.parametrize("kind", STOPPING_NOTES)
def test_the_same_holds_for_a_stop_by_an_annotation(kind: str) -> None:
    resource, key, value = STOPPING_NOTES[kind]
    both = f'"f:metadata": {{"f:annotations": {{"f:{PAUSED}": {{}}, "f:{key}": {{}}}}}}'
    other = f'"f:metadata": {{"f:annotations": {{"f:{key}": {{}}}}}}'

    def ours(*entries: dict[str, object]) -> bool:
        notes = {PAUSED: "{}", key: value}
        meta = {"annotations": notes, "managedFields": list(entries)}
        return is_paused_by_us(wire(metadata=meta), resource)

    assert ours(entry("gpu-pruner", both))
    assert not ours(entry("gpu-pruner", RECORDED), entry("Mozilla", other))
    assert not ours(entry("gpu-pruner", other), entry("kubectl-edit", RECORDED))


def test_an_owner_and_what_governs_it_say_whether_the_pause_is_ours() -> None:
    resource, body, stop = STOPPED_BY["Workload"]
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u-j"}
    meta = {
        "annotations": {PAUSED: "{}"},
        "managedFields": [entry("gpu-pruner", RECORDED, stop)],
        "ownerReferences": [job | {"controller": True}],
    }
    found = owner_records.governor(wire(metadata=meta, **body), resource)
    assert found is not None
    assert found.paused_by_us
    train = OwnerObject(root=found.target, paused_by_us=False)
    assert with_governors({"u-j": train}, [found])["u-j"].paused_by_us
    running = replace(found, halted=False, paused_by_us=False)
    forged = replace(train, paused_by_us=True)
    assert not with_governors({"u-j": forged}, [running])["u-j"].paused_by_us


SERVER = OwnerObject(
    root=RootRef("Deployment", "team-a", "server", "apps", "u-d"),
    desired=2,
    sized_by="keda-operator",
    annotations={PAUSED: "of an earlier pause"},
)
SCALER = GovernorRecord(
    ref=RootRef("ScaledObject", "team-a", "scaler", "keda.sh", "u-k"),
    target=RootRef("Deployment", "team-a", "server", "apps"),
    halted=True,
    switched_by="gpu-pruner",
    record="ours",
)


def test_a_root_shows_what_its_governor_says() -> None:
    found = with_governors({"u-d": SERVER}, [SCALER])["u-d"]
    assert (found.halted, found.sized_by) == (True, "keda-operator")
    at_zero = with_governors({"u-d": replace(SERVER, desired=0)}, [SCALER])["u-d"]
    assert at_zero.sized_by == "gpu-pruner"
    assert (found.governor, found.governor_uid) == ("ScaledObject", "u-k")
    assert found.annotations == {PAUSED: "ours"}
    resting = with_governors({"u-d": SERVER}, [replace(SCALER, halted=False, record=None)])["u-d"]
    assert (resting.halted, resting.annotations) == (False, {})


def test_a_zero_that_keda_made_is_no_pause() -> None:
    resting = replace(SCALER, halted=False, record=None)
    at_zero = replace(SERVER, halted=True, desired=0, annotations={})
    assert not with_governors({"u-d": at_zero}, [resting])["u-d"].halted


def test_our_own_pause_from_before_there_was_a_governor_stands() -> None:
    ours = replace(SERVER, halted=True, desired=0)
    assert with_governors({"u-d": ours}, [replace(SCALER, halted=False)])["u-d"] == ours


def test_of_several_the_one_that_holds_it_at_zero_counts() -> None:
    other = replace(SCALER, ref=replace(SCALER.ref, name="a", uid="u-a"), halted=False, record=None)
    for order in ([SCALER, other], [other, SCALER]):
        assert with_governors({"u-d": SERVER}, order)["u-d"].governor_uid == "u-k"


@pytest.mark.parametrize(
    "target",
    [
        RootRef("Deployment", "team-b", "server", "apps"),
        RootRef("StatefulSet", "team-a", "server", "apps"),
        RootRef("Deployment", "team-a", "server", "example.org"),
        RootRef("Deployment", "team-a", "server", "apps", "u-other"),
    ],
)
def test_a_governor_of_something_else_says_nothing(target: RootRef) -> None:
    owners = {"u-d": SERVER}
    assert with_governors(owners, [replace(SCALER, target=target)]) == owners


def test_a_governor_in_another_namespace_says_nothing() -> None:
    stranger = replace(
        SCALER, ref=replace(SCALER.ref, namespace="team-b"), target=replace(SERVER.root)
    )
    assert with_governors({"u-d": SERVER}, [stranger]) == {"u-d": SERVER}
