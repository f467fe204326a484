"""The shipped manifests grant what we use and no more, and run without privileges."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from gpu_pruner.kube.resources import ALL
from gpu_pruner.kube.reviews import ACCESS_REVIEWS, TOKEN_REVIEWS
from gpu_pruner.observe import hold
from gpu_pruner.settings.lease import OWN_NAMESPACE, LeaseSettings

DEPLOY = Path(__file__).parents[3] / "deploy"
BASE = DEPLOY / "kustomize" / "base"

Manifest = dict[str, object]
Rule = tuple[str, str, frozenset[str]]


def documents(folder: Path = BASE) -> Iterator[Manifest]:
    for path in sorted(folder.rglob("*.yaml")):
        for one in yaml.safe_load_all(path.read_text("utf-8")):
            assert isinstance(one, dict), path
            yield one


def of_kind(kind: str) -> list[Manifest]:
    return [one for one in documents() if one["kind"] == kind]


def only(kind: str) -> Manifest:
    (one,) = of_kind(kind)
    return one


def at(tree: object, *path: str | int) -> object:
    for step in path:
        assert isinstance(tree, dict | list)
        tree = tree[step]
    return tree


def rules(role: Manifest) -> set[Rule]:
    found = set()
    entries = role["rules"]
    assert isinstance(entries, list)
    for rule in entries:
        assert set(rule) == {"apiGroups", "resources", "verbs"}
        found |= {
            (group, resource, frozenset(rule["verbs"]))
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        }
    return found


WATCH = frozenset({"list", "watch"})
READ = WATCH | {"get"}
ROOTS = {
    ("apps", "replicasets"),
    ("apps", "deployments"),
    ("apps", "statefulsets"),
    ("kubeflow.org", "notebooks"),
    ("kubeflow.org", "workspaces"),
    ("kubeflow.org", "pytorchjobs"),
    ("leaderworkerset.x-k8s.io", "leaderworkersets"),
    ("argoproj.io", "rollouts"),
    ("serving.kserve.io", "inferenceservices"),
    ("serving.kserve.io", "llminferenceservices"),
    ("batch", "jobs"),
    ("jobset.x-k8s.io", "jobsets"),
    ("ray.io", "rayclusters"),
    ("trainer.kubeflow.org", "trainjobs"),
}
BETWEEN = {
    ("serving.knative.dev", "services"),
    ("serving.knative.dev", "configurations"),
    ("serving.knative.dev", "revisions"),
}
GOVERNORS = {("keda.sh", "scaledobjects"), ("kueue.x-k8s.io", "workloads")}
EVERY_MODE: set[Rule] = {
    ("", "pods", WATCH),
    ("", "nodes", WATCH),
    ("", "namespaces", READ),
    *((group, plural, READ) for group, plural in ROOTS),
    *((group, plural, WATCH) for group, plural in BETWEEN | GOVERNORS),
    ("gpu-pruner.io", "gpuworkloads", READ | {"create", "patch"}),
    ("gpu-pruner.io", "gpuworkloads/status", frozenset({"patch"})),
    ("", "events", frozenset({"create", "patch"})),
    *((one.group, one.plural, frozenset({"create"})) for one in (TOKEN_REVIEWS, ACCESS_REVIEWS)),
}
LEVERS: set[Rule] = {(group, plural, frozenset({"patch"})) for group, plural in ROOTS | GOVERNORS}


def test_the_roles_grant_exactly_this() -> None:
    roles = {str(at(role, "metadata", "name")): rules(role) for role in of_kind("ClusterRole")}
    assert roles == {"gpu-pruner": EVERY_MODE, "gpu-pruner-levers": LEVERS}


def test_no_rule_names_everything_or_a_secret_or_deletes() -> None:
    for role in of_kind("ClusterRole"):
        for group, resource, verbs in rules(role):
            assert "*" not in {group, resource, *verbs}
            assert resource not in {"secrets", "configmaps", "serviceaccounts/token"}
            assert not verbs & {"delete", "deletecollection", "update", "escalate", "impersonate"}
            assert "/" not in resource or resource == "gpuworkloads/status"


def test_every_resource_that_the_program_knows_is_granted() -> None:
    granted = {(group, resource) for group, resource, _ in EVERY_MODE}
    assert {(one.group, one.plural) for one in ALL} <= granted


def test_the_roles_go_to_our_service_account_only() -> None:
    account = only("ServiceAccount")
    for binding in of_kind("ClusterRoleBinding"):
        assert binding["subjects"] == [
            {
                "kind": "ServiceAccount",
                "name": at(account, "metadata", "name"),
                "namespace": at(only("Namespace"), "metadata", "name"),
            }
        ]
    bound = {at(binding, "roleRef", "name") for binding in of_kind("ClusterRoleBinding")}
    assert bound == {at(role, "metadata", "name") for role in of_kind("ClusterRole")}


def test_the_pod_passes_the_restricted_profile_with_a_read_only_root() -> None:
    pod = at(only("Deployment"), "spec", "template", "spec")
    assert at(pod, "securityContext", "runAsNonRoot") is True
    assert at(pod, "securityContext", "seccompProfile") == {"type": "RuntimeDefault"}
    assert at(pod, "containers", 0, "securityContext") == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    containers = at(pod, "containers")
    volumes = at(pod, "volumes")
    assert isinstance(containers, list)
    assert isinstance(volumes, list)
    assert len(containers) == 1
    assert {key for volume in volumes for key in volume} == {"name", "emptyDir"}
    for word in ("hostNetwork", "hostPID", "hostIPC", "initContainers"):
        assert word not in str(pod)
    labels = at(only("Namespace"), "metadata", "labels")
    assert isinstance(labels, dict)
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_lease_and_switch_are_granted_by_name_and_in_our_namespace_only() -> None:
    role, binding = only("Role"), only("RoleBinding")
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    assert role["rules"] == [
        leases | {"verbs": ["create"]},
        leases | {"resourceNames": [LeaseSettings().name], "verbs": ["get", "patch"]},
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": [hold.NAME],
            "verbs": ["get"],
        },
    ]
    assert at(role, "metadata", "namespace") == OWN_NAMESPACE
    assert at(binding, "roleRef", "name") == at(role, "metadata", "name")
    assert at(binding, "subjects", 0, "name") == at(only("ServiceAccount"), "metadata", "name")


def test_an_update_may_run_two_at_once_for_only_one_of_them_acts() -> None:
    assert at(only("Deployment"), "spec", "replicas") == 1
    spec = at(only("Deployment"), "spec")
    assert isinstance(spec, dict)
    assert "strategy" not in spec


def test_it_runs_in_dry_run_with_bounded_memory() -> None:
    container = at(only("Deployment"), "spec", "template", "spec", "containers", 0)
    args = at(container, "args")
    assert isinstance(args, list)
    assert args[0] == "run"
    assert "scale-down" not in str(args)
    assert at(container, "resources", "limits", "memory") == "256Mi"


def test_probes_service_and_monitor_meet_the_listener() -> None:
    container = at(only("Deployment"), "spec", "template", "spec", "containers", 0)
    assert at(container, "ports") == [{"name": "http", "containerPort": 8080}]
    assert at(container, "livenessProbe", "httpGet") == {"path": "/healthz", "port": "http"}
    assert at(container, "readinessProbe", "httpGet") == {"path": "/readyz", "port": "http"}
    service = only("Service")
    assert at(service, "metadata", "name") == "gpu-pruner-dashboard"
    assert at(service, "spec", "ports") == [{"name": "http", "port": 8080, "targetPort": "http"}]
    labels = at(only("Deployment"), "spec", "template", "metadata", "labels")
    assert at(service, "spec", "selector") == labels
    assert at(service, "metadata", "labels") == at(
        only("ServiceMonitor"), "spec", "selector", "matchLabels"
    )
    assert at(only("ServiceMonitor"), "spec", "endpoints", 0, "path") == "/metrics"


def test_the_kustomization_lists_every_file_and_the_crds() -> None:
    listed = at(only("Kustomization"), "resources")
    assert isinstance(listed, list)
    files = {path.name for path in BASE.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(listed) == files | {"../../crds"}
    for one in listed:
        assert (BASE / one).exists()


def test_everything_namespaced_lies_in_the_one_namespace() -> None:
    namespace = at(only("Namespace"), "metadata", "name")
    cluster_wide = {"Namespace", "ClusterRole", "ClusterRoleBinding", "Kustomization"}
    cluster_wide |= {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    for one in documents():
        if one["kind"] not in cluster_wide:
            assert at(one, "metadata", "namespace") == namespace, one["kind"]
