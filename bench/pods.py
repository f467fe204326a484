"""What reading a list of 10,000 pods costs: what we keep of it, against the client's own models."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import msgspec
from kubernetes.client import ApiClient

from bench.figures import Figure, middle
from gpu_pruner.kube.wire import ObjectList, Pod
from gpu_pruner.model.workload import PodRecord
from gpu_pruner.observe.cluster_records import odd_requests, pod_record

PODS, PAGE = 10_000, 500
"""Pages as long as the reflector asks for."""


def measure() -> list[Figure]:
    """Read page after page in both ways by turns; CPU time."""
    ours: list[float] = []
    theirs: list[float] = []
    kept: list[PodRecord] = []
    client = ApiClient()
    sizes = []
    for first in range(0, PODS, PAGE):
        page = pod_page(first)
        sizes.append(len(page))
        ours.append(_cpu(lambda page=page: kept.extend(records(page))))  # type: ignore[misc]  # bound now
        text = page.decode()
        theirs.append(
            _cpu(lambda text=text: client.deserialize(text, "V1PodList", "application/json"))  # type: ignore[misc]  # bound now
        )
    if len(kept) != PODS:
        raise AssertionError(f"kept {len(kept)} of {PODS} pods")
    return [
        Figure(
            what=f"{PODS:,} pods read: the client's models against ours",
            measured=middle(t / o for t, o in zip(theirs, ours, strict=True)),
            unit="x",
            at_least=20,
            note=f"CPU, median of {len(ours)} pages of {PAGE}; "
            f"{sum(sizes) / PODS / 1000:.1f} kB per pod with managed fields",
        ),
        Figure(what=f"{PODS:,} pods read: ours", measured=sum(ours), unit="s"),
        Figure(what=f"{PODS:,} pods read: the client's models", measured=sum(theirs), unit="s"),
    ]


def records(page: bytes) -> list[PodRecord]:
    """Read one page as `kube.reflector` and `observe.cluster` do."""
    found: list[PodRecord] = []
    for raw in msgspec.json.decode(page, type=ObjectList[msgspec.Raw]).items or ():
        pod = msgspec.json.decode(raw, type=Pod)
        record = pod_record(pod)
        if record is not None:
            odd_requests(pod)
            found.append(record)
    return found


def _cpu(work: Callable[[], object]) -> float:
    begin = process_time()
    work()
    return process_time() - begin


def pod_page(first: int) -> bytes:
    """Return one page of a pod list as an API server would send it."""
    pods = [_pod(number) for number in range(first, first + PAGE)]
    meta = {"resourceVersion": "1", "continue": "more"}
    return msgspec.json.encode(
        {"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": pods}
    )


_TIME = "2026-01-01T10:00:00Z"
_PORTS = [{"containerPort": port, "protocol": "TCP"} for port in (8000, 9090)]
_ENVIRONMENT = [
    {"name": "CUDA_VISIBLE_DEVICES", "value": "all"},
    {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    *({"name": f"SETTING_{number}", "value": f"value-{number}"} for number in range(12)),
]  # fmt: skip
_TOLERATIONS = [
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
]
_PROBE = {"httpGet": {"path": "/healthz", "port": 8000, "scheme": "HTTP"}, "timeoutSeconds": 1,
          "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}  # fmt: skip
_MANAGED: list[object] = [
    {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": _TIME,
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:spec": {
                f"f:{field}": {} | {f'k:{{"name":"{number}"}}': {".": {}, "f:value": {}}
                                    for number in range(5)}
                for field in ("containers", "env", "volumes", "tolerations")
            }
        },
    }
    for manager in ("kube-controller-manager", "kubelet")
]  # fmt: skip
_CONDITIONS = [
    {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": _TIME}
    for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
]


def _pod(number: int) -> dict[str, object]:
    name, uid = f"train-{number // 4}-{number % 4}", f"{number:08x}-0000-4000-8000-000000000000"
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": f"train-{number // 4}",
             "uid": f"{number // 4:08x}-1111-4000-8000-000000000000", "controller": True,
             "blockOwnerDeletion": True}  # fmt: skip
    metadata = {
        "name": name,
        "generateName": f"train-{number // 4}-",
        "namespace": f"team-{number % 200}",
        "uid": uid,
        "resourceVersion": str(number),
        "creationTimestamp": _TIME,
        "labels": {"app": f"train-{number // 4}", "pod-template-hash": "6d4cf56db6", "team": "a"},
        "annotations": {"kubectl.kubernetes.io/default-container": "main", "note": "x" * 200},
        "ownerReferences": [owner],
        "managedFields": _MANAGED,
    }
    return {"metadata": metadata, "spec": _pod_spec(number), "status": _pod_status(number)}


def _pod_spec(number: int) -> dict[str, object]:
    room = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}
    mounts = [
        {"name": volume, "mountPath": f"/{volume}", "readOnly": True}
        for volume in ("data", "token", "config", "cache")
    ]
    main = {
        "name": "main",
        "image": "registry.example/train:1",
        "command": ["python", "train.py"],
        "args": ["--epochs", "10", "--data", "/data"],
        "ports": _PORTS,
        "env": _ENVIRONMENT,
        "resources": {"limits": room, "requests": room},
        "volumeMounts": mounts,
        "livenessProbe": _PROBE,
        "readinessProbe": _PROBE,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    sidecar = main | {"name": "proxy", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "volumes": [{"name": name, "emptyDir": {}} for name in ("data", "token", "cache")],
        "containers": [main, sidecar],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "nodeName": f"node-{number // 8}",
        "securityContext": {"runAsUser": 1000, "fsGroup": 1000},
        "schedulerName": "default-scheduler",
        "tolerations": _TOLERATIONS,
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def _pod_status(number: int) -> dict[str, object]:
    statuses = [
        {
            "name": name,
            "state": {"running": {"startedAt": _TIME}},
            "lastState": {},
            "ready": True,
            "restartCount": 0,
            "image": "registry.example/train:1",
            "imageID": "registry.example/train@sha256:" + "0" * 64,
            "containerID": "containerd://" + f"{number:064x}",
            "started": True,
        }
        for name in ("main", "proxy")
    ]
    return {
        "phase": "Running",
        "conditions": _CONDITIONS,
        "hostIP": "10.0.0.1",
        "podIP": "10.1.0.1",
        "podIPs": [{"ip": "10.1.0.1"}],
        "startTime": _TIME,
        "containerStatuses": statuses,
        "qosClass": "Burstable",
    }
