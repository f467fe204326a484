"""A real JupyterHub with the real KubeSpawner in a real cluster: a server stopped, and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from support.controller import Controller
from support.jupyterhubs import JupyterHub
from support.kubelet import Pace
from support.lab import Lab
from support.product import Product, a_world, phases, told
from typing_extensions import override

from gpu_pruner.sim.tree import JsonObject, elements, number, text, texts
from gpu_pruner.sim.world import Workload

pytestmark = [pytest.mark.lab, pytest.mark.prometheus, pytest.mark.timeout(300)]

OPTIONS: JsonObject = {"profile": "gpu-large"}
ALICE = {"hub.jupyter.org/username": "alice"}


@dataclass
class WithHub(Product):
    """A product in whose first namespace a Hub spawns; its users' servers run when it begins."""

    users: tuple[str, ...] = ("alice",)
    hub: JupyterHub = field(init=False)

    @property
    @override
    def wanted(self) -> int:
        return super().wanted + len(self.users)

    @override
    def _make_things(self) -> None:
        super()._make_things()
        hub = JupyterHub(
            self.directory / "hub", namespace=self.team, kubeconfig=self.lab.kubeconfig()
        )
        self.hub = self._stack.enter_context(hub)
        for user in self.users:
            self.hub.user_starts(user, options=OPTIONS)

    def settings(self) -> Path:
        """Return a file that names the Hub."""
        hub = {
            "namespace": self.team,
            "url": self.hub.url,
            "token_file": str(self.hub.token_file()),
        }
        file = self.directory / "settings.yaml"
        file.write_text(yaml.safe_dump({"jupyter_hubs": [hub]}))
        return file

    def pausing(self) -> Controller:
        return self.controller("--config", str(self.settings()))

    def book(self) -> JsonObject:
        """Return the only GPUWorkload of the Hub's namespace."""
        path = f"/apis/gpu-pruner.io/v1alpha1/namespaces/{self.team}/gpuworkloads"
        [found] = elements(self.get(path), "items")
        return found


@pytest.fixture
def elsewhere(lab: Lab) -> str:
    return lab.namespace()


@pytest.fixture
def product(lab: Lab, team: str, elsewhere: str, tmp_path: Path) -> Iterator[WithHub]:
    world = a_world(
        Workload(kind="Pod", namespace=team, name="bare"),
        Workload(kind="Pod", namespace=elsewhere, name="notebook-1", annotations=ALICE),
    )
    with WithHub(lab, world, tmp_path) as running:
        yield running


def test_an_idle_server_is_stopped_through_its_hub_and_comes_back_as_it_was(
    product: WithHub, elsewhere: str
) -> None:
    team, ref = product.team, f"jupyterserver/{product.team}/jupyter-alice"
    bare = {f"pod/{team}/bare", f"pod/{elsewhere}/notebook-1"}
    others = product.uids(elsewhere)

    with product.pausing() as controller:
        controller.until_told(ref, state="Warned")
        controller.until_told(ref, state="Paused")
        assert not product.hub.server("alice")
        assert names(product, team) == {"bare"}
        record = texts(product.book(), "status", "pause", "former")
        assert record["hub.jupyter.org/username"] == "alice"
        for one in bare:
            assert controller.reason(one) == "BarePod"

        product.kubelet.pace = Pace(ready_seconds=2.0)
        product.by_hand("resume", ref, "--config", str(product.settings()))
        controller.until_told(ref, state="Watching")
        product.hub.until(lambda: product.hub.server("alice").get("ready"))
        assert product.hub.server("alice")["user_options"] == OPTIONS
        assert gpus(product, "jupyter-alice") == ["2"]  # as that profile has them
        controller.until_told(ref, reason="TooYoung")

    assert phases(product.writes())[:4] == ["Nominated", "Warned", "Pausing", "Paused"]
    assert product.workload_writes() == []  # it is the Hub that deletes and creates pods
    assert told(product.writes()) == ["GpuIdleWarning", "GpuIdlePaused", "GpuIdleRestored"]
    assert product.uids(elsewhere) == others
    assert "secret-of" not in controller.log.read_text()


def test_a_user_who_starts_it_again_gets_a_new_window_and_is_not_contested(
    product: WithHub,
) -> None:
    ref = f"jupyterserver/{product.team}/jupyter-alice"

    with product.pausing() as controller:
        controller.until_told(ref, state="Paused")
        product.hub.user_starts("alice", options={"profile": "gpu-small"})
        controller.until_told(ref, state="Watching")
        controller.until_told(ref, reason="TooYoung")

    assert product.hub.server("alice")["ready"]
    assert not text(product.book(), "status", "contestedBy")
    assert not text(product.book(), "status", "pause", "lever")


def test_while_its_hub_is_away_a_warned_server_is_left_alone_and_its_deadline_waits(
    product: WithHub,
) -> None:
    ref = f"jupyterserver/{product.team}/jupyter-alice"
    pods = product.uids(product.team)

    with product.pausing() as controller:
        controller.until_told(ref, state="Warned")
        product.hub.stop()
        controller.until_told(ref, reason="ClockFrozen")
        cycles(controller, 6)  # twelve seconds, of a notice of six
        assert controller.state(ref) == "Warned"
        assert "OwnerMissing" in text(controller.told(ref), "message")
        assert product.uids(product.team) == pods

        product.hub.start()
        controller.until_told(ref, state="Paused")

    assert not product.hub.server("alice")
    assert controller.log.read_text().count("ClientConnectorError") == 1  # of six cycles or more
    assert phases(product.writes()).count("Pausing") == 1


def test_a_token_that_the_hub_refuses_switches_the_lever_off(product: WithHub) -> None:
    ref = f"jupyterserver/{product.team}/jupyter-alice"
    product.hub.token_file().write_text("another-word")

    with product.pausing() as controller:
        controller.until_told(ref, reason="OwnerMissing")
        cycles(controller, 6)
        assert controller.state(ref) == "Watching"

    assert phases(product.writes()) == []
    assert product.hub.server("alice")["ready"]
    log = controller.log.read_text()
    assert log.count("it refuses the token") == 1
    assert "another-word" not in log


def cycles(controller: Controller, count: int) -> None:
    """Let the controller end a number of cycles."""

    def number_now() -> int:
        return number(controller.get("/api/v1/workloads"), "cycle", "number")

    last = number_now() + count
    controller.until(lambda: number_now() >= last)


def gpus(product: Product, name: str) -> list[str]:
    """Return what the containers of a pod ask for."""
    pod = product.object(f"pod/{product.team}/{name}")
    return [
        text(one, "resources", "limits", "nvidia.com/gpu")
        for one in elements(pod, "spec", "containers")
    ]


def names(product: Product, namespace: str) -> set[str]:
    return {text(one, "metadata", "name") for one in product.pods(namespace)}
