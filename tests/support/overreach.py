"""Writes that go farther than a pruner may, as data: each with what is wrong with it.

The stage has a Deployment and a StatefulSet that run at a size of 3, a Deployment that we paused at
2, one that somebody else stopped, a Notebook that runs, one that a person stopped, and a
GPUWorkload. `{team}` stands for the namespace, and `{uid}` for the uid of the object that a write
is about.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from gpu_pruner.model.annotations import NOTEBOOK_STOPPED, PAUSED
from gpu_pruner.sim.tree import JsonObject

WRONG: JsonObject = {
    "wrongPause": "d-1",
    "wrongAt": "2026-01-01T00:00:00Z",
    "wrongBy": "ada",
    "wrongReason": "it was training",
}

MERGE = "application/merge-patch+json"

RUNNING = "/apis/apps/v1/namespaces/{team}/deployments/running"
PAUSED_ONE = "/apis/apps/v1/namespaces/{team}/deployments/paused"
STOPPED = "/apis/apps/v1/namespaces/{team}/deployments/stopped"
BATCH = "/apis/apps/v1/namespaces/{team}/statefulsets/batch"
NOTEBOOK = "/apis/kubeflow.org/v1/namespaces/{team}/notebooks/notebook-1"
STOPPED_NOTEBOOK = "/apis/kubeflow.org/v1/namespaces/{team}/notebooks/notebook-2"
BOOKS = "/apis/gpu-pruner.io/v1alpha1/namespaces/{team}/gpuworkloads"
EVENTS = "/api/v1/namespaces/{team}/events"


@dataclass(frozen=True)
class Write:
    """One request."""

    wrong: str
    """What is wrong with it, in a few words."""
    method: str
    path: str
    body: JsonObject | None = None
    content: str = MERGE


def record(
    size: int | None, *, lever: str = "Deployment", uid: str = "{uid}", why: str = ""
) -> str:
    """Return a pause record as the product writes it."""
    sized = {} if size is None else {"replicas": size}
    told = {"lever": lever, **sized, "uid": uid, "generation": 1, "at": "2026-01-01T00:00:00Z"}
    told |= {"decision": "abc", "why": why, "by": "gpu-pruner"}
    return json.dumps(told, separators=(",", ":"))


def patch(
    wrong: str,
    path: str,
    *,
    spec: JsonObject | None = None,
    notes: JsonObject | None = None,
    **meta,
) -> Write:
    metadata = meta | ({} if notes is None else {"annotations": notes})
    body: JsonObject = ({"spec": spec} if spec else {}) | (
        {"metadata": metadata} if metadata else {}
    )
    return Write(wrong, "PATCH", path, body)


def every_write() -> Iterator[Write]:
    """Yield all of them."""
    yield from _pauses()
    yield from _more_than_a_pause()
    yield from _restores()
    yield from _notebooks()
    yield from _other_doors()
    yield from _own_objects()


def _pauses() -> Iterator[Write]:
    zero: JsonObject = {"replicas": 0}
    yield patch("no record", RUNNING, spec=zero)
    yield patch("no record of a StatefulSet", BATCH, spec=zero)
    for wrong, text in {
        "the record of another size": record(2),
        "the record of no size": record(None),
        "the record of another object": record(3, uid="0d4f1c0e-0000-4000-8000-000000000000"),
        "the record of another kind": record(3, lever="StatefulSet"),
        "text for a record": "3",
        "the right size only in the words of a record": record(2, why='"replicas":3,'),
        "a record with a size that begins like the right one": record(31),
    }.items():
        yield patch(wrong, RUNNING, spec=zero, notes={PAUSED: text})
    for size in (1, 2, 4, 1000):
        yield patch(f"{size} replicas in place of 3", RUNNING, spec={"replicas": size})
    true = {PAUSED: record(3)}
    yield patch("one replica left, with a record", RUNNING, spec={"replicas": 1}, notes=true)
    yield patch("a record and no pause", RUNNING, notes=true)


def _more_than_a_pause() -> Iterator[Write]:
    pause: JsonObject = {"replicas": 0}
    true: JsonObject = {PAUSED: record(3)}
    container = {"name": "main", "image": "registry.example/other:1"}
    for wrong, more in {
        "another image": {"template": {"spec": {"containers": [container]}}},
        "a restart": {"template": {"metadata": {"annotations": {"restartedAt": "now"}}}},
        "another account": {"template": {"spec": {"serviceAccountName": "other"}}},
        "another node": {"template": {"spec": {"nodeSelector": {"a": "b"}}}},
        "another strategy": {"strategy": {"type": "Recreate", "rollingUpdate": None}},
        "a halted rollout": {"paused": True},
        "a shorter history": {"revisionHistoryLimit": 1},
    }.items():
        yield patch(f"{wrong}", RUNNING, spec=dict(more))
        yield patch(f"{wrong} with the pause", RUNNING, spec=pause | more, notes=true)
    yield patch("a label with the pause", RUNNING, spec=pause, notes=true, labels={"a": "b"})
    yield patch("a label taken", RUNNING, labels={"app": None})
    yield patch("another's annotation", RUNNING, spec=pause, notes=true | {"a": "b"})
    yield patch("another's annotation taken", RUNNING, notes={"team-a/note": None})
    yield patch("a finalizer", RUNNING, finalizers=["gpu-pruner.io/wait"])
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"}
    yield patch("an owner", RUNNING, ownerReferences=[owner])
    policy = {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}
    yield patch("volumes that go with the pods", BATCH, spec=dict(policy))
    batch = {PAUSED: record(3, lever="StatefulSet")}
    yield patch("the same with the pause", BATCH, spec=pause | policy, notes=batch)


def _restores() -> Iterator[Write]:
    for size in (1, 3, 20):
        spec: JsonObject = {"replicas": size}
        yield patch(f"{size} for a recorded 2", PAUSED_ONE, spec=spec, notes={PAUSED: None})
    yield patch("the record left behind", PAUSED_ONE, spec={"replicas": 2})
    forged = {PAUSED: record(5)}
    yield patch("a record replaced while paused", PAUSED_ONE, notes=forged)
    yield patch("a forged record restored", PAUSED_ONE, spec={"replicas": 5}, notes=forged)
    gone: JsonObject = {PAUSED: None}
    more = {"replicas": 2, "template": {"spec": {"nodeSelector": {"a": "b"}}}}
    yield patch("more than the size given back", PAUSED_ONE, spec=more, notes=gone)
    yield patch("what somebody else stopped", STOPPED, spec={"replicas": 1})
    yield patch("the same with a record", STOPPED, spec={"replicas": 1}, notes={PAUSED: record(1)})
    yield patch("a record on what is stopped", STOPPED, notes={PAUSED: record(1)})


def _notebooks() -> Iterator[Write]:
    stop: JsonObject = {NOTEBOOK_STOPPED: "2026-01-01T00:00:00Z"}
    true: JsonObject = {PAUSED: record(None, lever="Notebook")}
    yield patch("no record of a Notebook", NOTEBOOK, notes=stop)
    yield patch("a record and no stop", NOTEBOOK, notes=true)
    spec: JsonObject = {"template": {"spec": {"containers": []}}}
    yield patch("another pod with the stop", NOTEBOOK, notes=stop | true, spec=spec)
    yield patch("another's stop taken", STOPPED_NOTEBOOK, notes={NOTEBOOK_STOPPED: None})
    yield patch("another's stop replaced", STOPPED_NOTEBOOK, notes=stop | true)


def _other_doors() -> Iterator[Write]:
    for path in (RUNNING, BATCH):
        yield patch("the scale subresource", f"{path}/scale", spec={"replicas": 0})
    yield Write("a status", "PATCH", f"{RUNNING}/status", {"status": {"observedGeneration": 99}})
    for path in (RUNNING, BATCH, NOTEBOOK, f"{BOOKS}/book", "/api/v1/namespaces/{team}"):
        yield Write("a deletion", "DELETE", path)
    pods = "/api/v1/namespaces/{team}/pods"
    yield Write("all pods deleted", "DELETE", pods)
    yield Write("a pod deleted", "DELETE", f"{pods}/bare")
    named: JsonObject = {"metadata": {"name": "bare", "namespace": "{team}"}}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction"} | named
    yield _create("a pod evicted", f"{pods}/bare/eviction", eviction)
    yield Write("a command in a pod", "POST", f"{pods}/bare/exec?command=id&stdout=true")
    yield Write("a pod changed", "PATCH", f"{pods}/bare", {"metadata": {"labels": {"a": "b"}}})
    container = {"name": "main", "image": "registry.example/other:1"}
    made: JsonObject = {"metadata": {"name": "made"}}
    yield _create("a pod", pods, made | {"spec": {"containers": [container]}})
    yield _create("a secret", "/api/v1/namespaces/{team}/secrets", made)
    yield _create("a config map", "/api/v1/namespaces/{team}/configmaps", made)
    token = "/api/v1/namespaces/{team}/serviceaccounts/default/token"
    yield _create("a token", token, {"spec": {"audiences": ["a"]}})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    yield _create("a right", bindings, made | {"roleRef": role})
    yield _create("a node", "/api/v1/nodes", made)
    label: JsonObject = {"metadata": {"labels": {"a": "b"}}}
    yield Write("a namespace changed", "PATCH", "/api/v1/namespaces/{team}", label)


LIKE_A_HUB: JsonObject = {
    "rootRef": {"apiVersion": "apps/v1", "kind": "JupyterServer", "name": "running", "uid": "u"}
}


def _own_objects() -> Iterator[Write]:
    root: JsonObject = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "running"}
    root = root | {"uid": "u"}
    for wrong, owner, spec, meta in (
        ("a release in a new book", {}, {"release": True}, {}),
        ("an exemption in a new book", {}, {"exempt": True}, {}),
        ("a book of another's", {"uid": "v"}, {}, {}),
        ("a book that blocks deletion", {"blockOwnerDeletion": True}, {}, {}),
        ("a book with a finalizer", {}, {}, {"finalizers": ["gpu-pruner.io/wait"]}),
        ("a book of nobody's", None, {}, {}),
        ("a book of nobody's about what sounds like a Hub's", None, LIKE_A_HUB, {}),
    ):
        owners = [] if owner is None else [root | owner]
        metadata = {"name": "made", "ownerReferences": owners} | meta
        body: JsonObject = {"apiVersion": "gpu-pruner.io/v1alpha1", "kind": "GPUWorkload"}
        yield _create(wrong, BOOKS, body | {"metadata": metadata, "spec": {"rootRef": root} | spec})
    book = f"{BOOKS}/book"
    yield from _wishes(book)
    about = {"kind": "Deployment", "name": "running", "namespace": "{team}"}
    event: JsonObject = {"metadata": {"name": "made"}, "involvedObject": about, "type": "Normal"}
    event = event | {"reason": "Killing"}
    yield _create("an Event in another's name", EVENTS, event | {"reportingComponent": "kubelet"})
    yield _create("an Event in nobody's name", EVENTS, event)
    yield Write("another's Event changed", "PATCH", f"{EVENTS}/theirs", {"message": "well"})
    yield patch("another's Event taken over", f"{EVENTS}/theirs", labels={"a": "b"})
    leases = "/apis/coordination.k8s.io/v1/namespaces/{team}/leases"
    yield _create("a Lease elsewhere", leases, {"metadata": {"name": "gpu-pruner"}})
    other = "/apis/coordination.k8s.io/v1/namespaces/gpu-pruner-system/leases"
    yield _create("another Lease", other, {"metadata": {"name": "other"}})


def _wishes(book: str) -> Iterator[Write]:
    """Yield wishes of nobody's; the book has a keep of a person's."""
    ada: JsonObject = {"releaseBy": "ada", "releaseReason": "done"}
    moment: JsonObject = {"releaseAt": "2026-01-01T00:00:00Z"}
    for wrong, spec in (
        ("an exemption of nobody's", {"exempt": True}),
        ("an exemption without a reason", {"exempt": True, "exemptBy": "ada"}),
        ("a release of nobody's", {"release": True} | moment),
        ("a release without a reason", {"release": True, "releaseBy": "ada"} | moment),
        ("a release without its moment", {"release": True} | ada),
        ("a keep of nobody's", {"keepUntil": "2031-01-01T00:00:00Z", "keepBy": None}),
        ("a keep in nobody's name", {"keepBy": ""}),
        ("half a keep taken back", {"keepBy": None}),
        ("a pause called wrong in somebody's name", WRONG),
        ("who called a pause wrong", {"wrongBy": "ada"}),
    ):
        yield Write(wrong, "PATCH", book, {"spec": dict(spec)})


def _create(wrong: str, path: str, body: JsonObject) -> Write:
    return Write(wrong, "POST", path, body, "application/json")
