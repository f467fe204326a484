"""The watch on a real API server that has a bad day: what it knows stays whole, and it recovers."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict
from support.bad_proxy import BadProxy
from support.bodies import deployment
from support.lab import Lab
from support.product import OUR_NAMESPACE, install
from support.scripted_api import eventually

from gpu_pruner.kube.client import ClusterClient
from gpu_pruner.kube.throttle import Pace
from gpu_pruner.observe.cluster import ClusterWatch
from gpu_pruner.settings.clock import SystemClock
from gpu_pruner.settings.levers import CustomLever
from gpu_pruner.settings.schema import KubernetesSettings
from gpu_pruner.sim.tree import JsonObject

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

SHORT = 30
"""All waits of the real pace are divided by it."""
REAL = Pace()
QUICK = Pace(
    first=REAL.first / SHORT,
    longest=REAL.longest / SHORT,
    absent=REAL.absent / SHORT,
    silence=REAL.silence / SHORT,
    brief=REAL.brief / SHORT,
)
CYCLE_SECONDS = 60.0
PATIENT = 60.0
"""Seconds of a busy machine; a quiet one takes the tenth."""
BINDING = "clusterrolebinding/gpu-pruner"


def a_lever(team: str) -> CustomLever:
    """Return a lever of a kind that nobody has installed."""
    return CustomLever(
        group=f"{team}.example",
        version="v1",
        plural="trainers",
        kind="Trainer",
        replicas="spec.size",
    )


def a_crd(lever: CustomLever) -> JsonObject:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"plural": lever.plural, "singular": "trainer", "kind": lever.kind}
    version = {"name": lever.version, "served": True, "storage": True}
    schema = {"schema": {"openAPIV3Schema": free}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{lever.plural}.{lever.group}"},
        "spec": {
            "group": lever.group,
            "scope": "Namespaced",
            "names": names,
            "versions": [version | schema],
        },
    }


def let_read(lab: Lab, lever: CustomLever) -> None:
    """Give our ServiceAccount what the documentation of custom levers asks for."""
    rule = {"apiGroups": [lever.group], "resources": [lever.plural], "verbs": ["list", "watch"]}
    role: JsonObject = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": lever.group},
        "rules": [rule],
    }
    lab.kubectl("create", "-f", "-", stdin=json.dumps(role))
    ours = f"--serviceaccount={OUR_NAMESPACE}:gpu-pruner"
    lab.kubectl("create", "clusterrolebinding", lever.group, f"--clusterrole={lever.group}", ours)


@dataclass
class Scene:
    lab: Lab
    proxy: BadProxy
    watch: ClusterWatch
    lever: CustomLever
    logs: list[EventDict]
    made: int = field(default=0)

    @property
    def team(self) -> str:
        return self.lever.group.removesuffix(".example")

    @property
    def said_of_lever(self) -> list[str]:
        """Return what was logged of the kind that is not installed."""
        name = f"{self.lever.plural}.{self.lever.group}"
        return [one["event"] for one in self.logs if one.get("kind") == name]

    def asked_of(self, path: str) -> list[str]:
        return [one for one in self.proxy.asked if path in one]

    def make(self, count: int = 1) -> None:
        for _ in range(count):
            body = deployment(f"server-{self.made}", replicas=0)
            body |= {"apiVersion": "apps/v1", "kind": "Deployment"}
            self.lab.kubectl("create", "-n", self.team, "-f", "-", stdin=json.dumps(body))
            self.made += 1

    @property
    def seen(self) -> list[str]:
        """Return the names of the team's Deployments, as the watch has them."""
        roots = [one.root for one in self.watch.view().owners.values()]
        mine = [one for one in roots if (one.namespace, one.kind) == (self.team, "Deployment")]
        return sorted(one.name for one in mine)

    @property
    def is_fresh(self) -> bool:
        return self.watch.view().stale_seconds == 0

    async def until_seen(self) -> None:
        """Wait until all is known that there is."""
        await eventually(lambda: len(self.seen) == self.made and self.is_fresh, seconds=PATIENT)


@pytest.fixture
async def scene(lab: Lab, team: str) -> AsyncIterator[Scene]:
    lever = a_lever(team)
    with BadProxy(lab) as proxy, capture_logs() as logs:
        path = proxy.kubeconfig(install(lab))
        let_read(lab, lever)
        clock = SystemClock()
        client = await ClusterClient.connect(KubernetesSettings(kubeconfig=path), clock=clock)
        watch = ClusterWatch(client, clock=clock, pace=QUICK, custom=[lever])
        it = Scene(lab, proxy, watch, lever, logs)
        it.make(3)
        await watch.start()
        try:
            await it.until_seen()
            yield it
        finally:
            await watch.close()
            await client.close()


def relist(scene: Scene) -> None:
    """Let every kind be listed anew."""
    scene.proxy.expires = 1000
    scene.proxy.break_watches()


def test_the_real_waits_recover_within_two_cycles() -> None:
    """Whatever breaks off is taken up again, and silence is noticed, in less than two cycles."""
    assert REAL.silence + REAL.longest <= 2 * CYCLE_SECONDS
    assert REAL.absent <= 2 * CYCLE_SECONDS


async def test_a_server_that_dies_in_mid_list(scene: Scene) -> None:
    is_dead = threading.Event()

    def die() -> None:
        scene.lab.stop("apiserver", signal.SIGKILL)
        is_dead.set()

    scene.proxy.when_listing = die
    relist(scene)
    try:
        await eventually(is_dead.is_set, seconds=PATIENT)
        await eventually(lambda: not scene.is_fresh, seconds=PATIENT)

        assert len(scene.seen) == 3, "what was known is there as a whole"
    finally:
        scene.proxy.expires = 0
        scene.lab.start("apiserver")

    scene.make()
    await scene.until_seen()


async def test_a_permission_that_is_revoked(scene: Scene) -> None:
    scene.lab.kubectl("delete", BINDING)
    try:
        scene.proxy.break_watches()
        await eventually(lambda: "Pod" in scene.watch.view().missing_kinds, seconds=PATIENT)
        assert len(scene.seen) == 3
        assert not scene.is_fresh, "nothing may be decided of a cluster that we may not see"
    finally:
        install(scene.lab)

    scene.make()
    await scene.until_seen()
    assert "Pod" not in scene.watch.view().missing_kinds


async def test_a_watch_that_hangs_without_an_end(scene: Scene) -> None:
    scene.proxy.hang_watches()
    scene.make()

    await scene.until_seen()


async def test_a_server_that_forgets_every_list_before_its_end(scene: Scene) -> None:
    scene.proxy.pages = 1
    scene.proxy.forgets = True
    relist(scene)
    await eventually(lambda: not scene.is_fresh, seconds=PATIENT)
    assert len(scene.seen) == 3
    scene.proxy.expires = 0

    scene.make()
    await scene.until_seen()


async def test_a_server_that_shows_an_older_state(scene: Scene) -> None:
    scene.proxy.is_stale = True
    scene.make()
    relist(scene)
    await eventually(lambda: not scene.is_fresh, seconds=PATIENT)
    scene.proxy.expires = 0
    assert len(scene.seen) == 3

    scene.proxy.is_stale = False
    await scene.until_seen()


async def test_a_kind_that_is_not_installed_is_said_once(scene: Scene) -> None:
    lab, kind = scene.lab, scene.lever
    path = f"/apis/{kind.group}/{kind.version}/{kind.plural}"
    await eventually(lambda: len(scene.asked_of(path)) >= 4, seconds=PATIENT)
    assert kind.kind in scene.watch.view().missing_kinds
    assert scene.is_fresh, "what is not installed holds nobody up"
    assert scene.said_of_lever == ["kind is not available"]

    lab.kubectl("create", "-f", "-", stdin=json.dumps(a_crd(kind)))
    lab.kubectl("wait", "--for=condition=Established", f"crd/{kind.plural}.{kind.group}")
    await eventually(
        lambda: kind.kind not in scene.watch.view().missing_kinds and scene.is_fresh,
        seconds=PATIENT,
    )
    assert scene.said_of_lever == ["kind is not available", "kind is there now"]
