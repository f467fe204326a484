"""The lab itself: a real control plane whose parts work together, and which what we ship fits."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.kubelet import FakeKubelet
from support.lab import ADMIN, Lab

from gpu_pruner.sim.tree import JsonObject, child, mapping, number, text
from gpu_pruner.sim.world import Behaviour, Node, Workload, World

pytestmark = [pytest.mark.lab, pytest.mark.timeout(180)]

HERE = Path(__file__).parent
DEPLOY = HERE.parents[1] / "deploy"
OURS = "system:serviceaccount:gpu-pruner-system:gpu-pruner"


@pytest.fixture
def kubelet(lab: Lab, team: str) -> Iterator[FakeKubelet]:
    busy = Behaviour(activity=((0.0, 0.9),))
    world = World(
        nodes=(
            Node(name="node-1", gpus=2),
            Node(name="node-2", gpus=1, mig=("1g.10gb", "2g.20gb")),
        ),
        workloads=(Workload(kind="Deployment", namespace=team, name="server", behaviour=busy),),
    )
    shared = {"node-1": {"nvidia.com/gpu.shared": 4}}
    with FakeKubelet(lab.api("kubelet"), world, extra=shared) as running:
        lab.audit.mark()
        yield running
        running.thaw()
        lab.reset()


def a_pod(resource: str = "nvidia.com/gpu", count: int = 1) -> JsonObject:
    room = {resource: str(count)} if count else {}
    container = {
        "name": "main",
        "image": "registry.example/server:1",
        "resources": {"limits": room},
    }
    return {"containers": [container]}


def a_deployment(team: str, pod: JsonObject, *, replicas: int = 1) -> JsonObject:
    labels = {"app": "server"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "server", "namespace": team},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def apply(lab: Lab, body: JsonObject) -> None:
    lab.kubectl("apply", "-f", "-", stdin=json.dumps(body))


def seen(lab: Lab, team: str, *what: str) -> JsonObject:
    found: JsonObject = json.loads(lab.kubectl("get", "-n", team, "-o", "json", *what))
    return found


def wait_for_rollout(lab: Lab, team: str) -> None:
    lab.kubectl("rollout", "status", "deployment/server", "-n", team, "--timeout=60s")


@pytest.mark.usefixtures("kubelet")
def test_a_deployment_runs_is_scaled_to_zero_and_is_gone(lab: Lab, team: str) -> None:
    apply(lab, a_deployment(team, a_pod(), replicas=2))
    wait_for_rollout(lab, team)
    pods = seen(lab, team, "pods")["items"]
    assert isinstance(pods, list)
    assert [text(one, "status", "phase") for one in pods] == ["Running", "Running"]
    assert {text(one, "spec", "nodeName") for one in pods} == {"node-1"}

    lab.kubectl("scale", "deployment/server", "-n", team, "--replicas=0")
    lab.kubectl("wait", "--for=delete", "pods", "-l", "app=server", "-n", team, "--timeout=60s")

    assert number(seen(lab, team, "deployment/server"), "status", "replicas") == 0
    writes = [one for one in lab.audited(ADMIN) if one.is_write]
    assert [(one.verb, one.object_ref.resource, one.object_ref.subresource) for one in writes] == [
        ("create", "deployments", ""),
        ("patch", "deployments", "scale"),
    ]
    assert writes[1].request_object == {"spec": {"replicas": 0}}


@pytest.mark.usefixtures("kubelet")
def test_a_pod_without_a_free_gpu_stays_pending(lab: Lab, team: str) -> None:
    apply(lab, a_deployment(team, a_pod(count=2), replicas=2))

    lab.kubectl("wait", "deployment/server", "-n", team, "--for=jsonpath={.status.readyReplicas}=1")
    lab.kubectl(
        *("wait", "pods", "-l", "app=server", "-n", team, "--timeout=60s"),
        *("--field-selector=status.phase=Pending", "--for=condition=PodScheduled=false"),
    )


@pytest.mark.usefixtures("kubelet")
@pytest.mark.parametrize("resource", ["nvidia.com/mig-2g.20gb", "nvidia.com/gpu.shared"])
def test_slices_and_shared_gpus_are_given_out(lab: Lab, team: str, resource: str) -> None:
    apply(lab, a_deployment(team, a_pod(resource)))

    wait_for_rollout(lab, team)


def test_the_exporter_of_the_same_world_names_the_pod(
    lab: Lab, team: str, kubelet: FakeKubelet
) -> None:
    apply(lab, a_deployment(team, a_pod()))
    wait_for_rollout(lab, team)

    pods = seen(lab, team, "pods")["items"]
    assert isinstance(pods, list)
    labels = f'namespace="{team}",pod="{text(pods[0], "metadata", "name")}"}}'
    scraped = kubelet.exposition("node-1").splitlines()
    assert (
        sum(line.startswith("DCGM_FI_PROF_GR_ENGINE") and labels in line for line in scraped) == 1
    )


def test_a_stuck_node_ends_its_pods_when_it_is_well_again(
    lab: Lab, team: str, kubelet: FakeKubelet
) -> None:
    apply(lab, a_deployment(team, a_pod()))
    wait_for_rollout(lab, team)
    kubelet.freeze("node-1")
    lab.kubectl("scale", "deployment/server", "-n", team, "--replicas=0")
    terminating = "jsonpath={.metadata.deletionTimestamp}"
    lab.kubectl("wait", "pods", "-l", "app=server", "-n", team, f"--for={terminating}")

    kubelet.thaw("node-1")

    lab.kubectl("wait", "--for=delete", "pods", "-l", "app=server", "-n", team, "--timeout=60s")


def test_a_node_can_be_reported_dead(lab: Lab, kubelet: FakeKubelet) -> None:
    kubelet.report("node-2", ready=False)

    lab.kubectl("wait", "node/node-2", "--for=condition=Ready=Unknown", "--timeout=10s")


@pytest.mark.usefixtures("kubelet")
def test_the_api_server_may_be_killed_and_comes_back(lab: Lab, team: str) -> None:
    lab.stop("apiserver", signal.SIGKILL)
    lab.start("apiserver")

    apply(lab, a_deployment(team, a_pod()))

    wait_for_rollout(lab, team)


@pytest.mark.usefixtures("kubelet")
def test_what_we_ship_is_accepted_and_its_account_may_read_pods_but_no_secrets(lab: Lab) -> None:
    lab.kubectl("apply", "-f", HERE / "crds")
    lab.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    lab.kubectl("apply", "-k", DEPLOY / "kustomize" / "base")
    ours = lab.service_account("gpu-pruner-system", "gpu-pruner")

    lab.kubectl("get", "pods,nodes", "-A", kubeconfig=ours)
    with pytest.raises(RuntimeError, match="Forbidden"):
        lab.kubectl("get", "secrets", "-A", kubeconfig=ours)

    lab.kubectl("rollout", "status", "deployment/gpu-pruner", "-n", "gpu-pruner-system")
    refused = {
        one.object_ref.resource for one in lab.audited(OURS) if one.response_status.code == 403
    }
    assert refused == {"secrets"}


def test_pod_security_is_enforced(lab: Lab, team: str) -> None:
    level = "pod-security.kubernetes.io/enforce=restricted"
    lab.kubectl("label", "namespace", team, level)

    named = {"name": "bare", "namespace": team}
    pod: JsonObject = {"apiVersion": "v1", "kind": "Pod", "metadata": named}
    with pytest.raises(RuntimeError, match="violates PodSecurity"):
        apply(lab, pod | {"spec": a_pod()})


def test_the_server_says_its_version(lab: Lab) -> None:
    version = json.loads(lab.kubectl("version", "-o", "json"))
    module = (HERE / "go.mod").read_text()

    assert f"k8s.io/kubernetes {text(version, 'serverVersion', 'gitVersion')}\n" in module


async def test_a_watch_tells_what_happens(lab: Lab) -> None:
    async with lab.api() as api:
        _, version = await api.items("/api/v1/namespaces/default/configmaps")
        made = await api.create(
            "/api/v1/namespaces/default/configmaps", {"metadata": {"generateName": "it-"}}
        )
        watch = api.watch("/api/v1/namespaces/default/configmaps", since=version)
        async for kind, body in watch:
            assert (kind, child(body, "metadata")) == ("ADDED", mapping(made, "metadata"))
            break
        await watch.aclose()
