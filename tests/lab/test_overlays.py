"""What we ship beside the base is no more than it says, and a cluster takes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from support.kubelet import FakeKubelet, Pace
from support.lab import Lab
from support.product import BASE, CRDS, OUR_NAMESPACE, until

from gpu_pruner.sim.world import Node, World

pytestmark = [pytest.mark.lab, pytest.mark.timeout(180)]

TWO = BASE.parent / "overlays" / "two-replicas"
WEEKLY = BASE.parent / "overlays" / "weekly-report"
REPORT = "gpu-pruner-report"
NODES = (Node(name="node-1"), Node(name="node-2"))
Manifests = dict[tuple[str, str], Any]


def rendered(lab: Lab, folder: object) -> Manifests:
    """Return what kustomize makes of a folder, by kind and name."""
    told = yaml.safe_load_all(lab.kubectl("kustomize", str(folder)))
    return {(one["kind"], one["metadata"]["name"]): one for one in told}


def items(lab: Lab, kind: str) -> list[Any]:
    """Return the objects of a kind in our namespace."""
    told = lab.kubectl("get", kind, "-n", OUR_NAMESPACE, "-o", "json")
    found: list[Any] = json.loads(told)["items"]
    return found


def rolled_out(lab: Lab) -> None:
    """Wait until every replica is of the newest template and Ready."""
    where = ("-n", OUR_NAMESPACE, "--timeout=90s")
    lab.kubectl("rollout", "status", "deployment/gpu-pruner", *where)


@pytest.fixture
def kubelet(lab: Lab) -> Iterator[FakeKubelet]:
    """Return the nodes of a cluster that went from the base to the overlay, all Ready."""
    lab.kubectl("apply", "-f", CRDS)
    lab.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    with FakeKubelet(lab.api("kubelet"), World(nodes=NODES)) as running:
        lab.kubectl("apply", "-k", str(BASE))
        rolled_out(lab)
        lab.kubectl("apply", "-k", str(TWO))
        rolled_out(lab)
        yield running
        running.pace = Pace()
        lab.kubectl("delete", "deployment/gpu-pruner", "pdb/gpu-pruner", "-n", OUR_NAMESPACE)
        lab.reset(keep=[OUR_NAMESPACE])


def test_it_is_the_base_with_two_replicas_and_what_keeps_them_apart(lab: Lab) -> None:
    base, two = rendered(lab, BASE), rendered(lab, TWO)

    budget = two.pop(("PodDisruptionBudget", "gpu-pruner"))
    deployment = two[("Deployment", "gpu-pruner")]
    assert deployment["spec"].pop("replicas") == 2
    assert deployment["spec"].pop("strategy")["rollingUpdate"]["maxUnavailable"] == 0
    pod = deployment["spec"]["template"]["spec"]
    [spread] = pod.pop("topologySpreadConstraints")
    [away] = pod.pop("affinity")["podAntiAffinity"].popitem()[1]
    assert base[("Deployment", "gpu-pruner")]["spec"].pop("replicas") == 1
    assert two == base

    labels = deployment["spec"]["selector"]
    assert budget["spec"]["selector"] == labels
    assert spread["labelSelector"] == away["podAffinityTerm"]["labelSelector"] == labels


def test_two_replicas_run_on_two_nodes_and_a_drain_takes_one_at_a_time(
    lab: Lab, kubelet: FakeKubelet
) -> None:
    one, other = (pod for pod in items(lab, "pods") if "deletionTimestamp" not in pod["metadata"])
    assert {pod["spec"]["nodeName"] for pod in (one, other)} == {"node-1", "node-2"}

    def allowed() -> int:
        found: int = items(lab, "pdb")[0].get("status", {}).get("disruptionsAllowed", 0)
        return found

    until(lambda: allowed() == 1)
    kubelet.pace.ready_seconds = 600  # whoever comes in its place takes long
    assert evicted(lab, one) == ""
    until(lambda: allowed() == 0)
    assert "disruption budget" in evicted(lab, other)


def test_the_weekly_report_is_a_cron_job_that_asks_the_controller(lab: Lab) -> None:
    base, weekly = rendered(lab, BASE), rendered(lab, WEEKLY)
    job = weekly.pop(("CronJob", "gpu-pruner-weekly-report"))
    account = weekly.pop(("ServiceAccount", REPORT))
    assert weekly == base  # nothing is bound to the account, and nothing else has changed

    template = job["spec"]["jobTemplate"]["spec"]["template"]
    pod = template["spec"]
    assert pod["serviceAccountName"] == account["metadata"]["name"]
    assert not pod["automountServiceAccountToken"]
    [container] = pod["containers"]
    [controller] = base[("Deployment", "gpu-pruner")]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == controller["image"]
    service = base[("Service", "gpu-pruner-dashboard")]
    [port] = service["spec"]["ports"]
    address = f"http://{service['metadata']['name']}:{port['port']}"
    assert f"--controller={address}" in container["args"]
    selected = service["spec"]["selector"].items()
    assert not selected <= template["metadata"]["labels"].items()  # it is no replica


def test_a_cluster_takes_the_cron_job_and_its_account_may_nothing(
    lab: Lab, kubelet: FakeKubelet
) -> None:
    lab.kubectl("apply", "-k", str(WEEKLY))
    where = ("-n", OUR_NAMESPACE)
    lab.kubectl("create", "job", "now", "--from=cronjob/gpu-pruner-weekly-report", *where)

    def pods() -> list[Any]:
        found = items(lab, "pods")
        return [one for one in found if one["metadata"]["labels"].get("job-name") == "now"]

    until(lambda: [one for one in pods() if one["status"].get("phase") == "Running"])
    [pod] = pods()
    volumes = pod["spec"]["volumes"]
    assert [one["secret"]["secretName"] for one in volumes] == ["gpu-pruner-slack-webhook"]
    user = f"system:serviceaccount:{OUR_NAMESPACE}:{REPORT}"
    for verb, resource in (("list", "pods"), ("get", "secrets"), ("get", "gpuworkloads")):
        with pytest.raises(RuntimeError, match="can-i"):  # it prints no, and fails
            lab.kubectl("auth", "can-i", verb, resource, f"--as={user}", *where)
    lab.kubectl("delete", "cronjob/gpu-pruner-weekly-report", *where)  # and with it its job


def evicted(lab: Lab, pod: Any) -> str:
    """Evict a pod as a drain does, and return why that was refused; empty where it was not."""
    name = pod["metadata"]["name"]
    path = f"/api/v1/namespaces/{OUR_NAMESPACE}/pods/{name}/eviction"
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    try:
        lab.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(body))
    except RuntimeError as error:
        return str(error)
    return ""
