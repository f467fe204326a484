"""Levers that only the settings know."""

from __future__ import annotations

from support.acting import SPACE, World
from support.manual_clock import ManualClock
from support.memory_cluster import Json, MemoryCluster, tree

from gpu_pruner.act.actor import Actor
from gpu_pruner.act.levers import Levers
from gpu_pruner.kube.resources import GPUWORKLOADS, NAMESPACES, Resource
from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.model.orders import PauseOrder, Result
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.workload import RootRef
from gpu_pruner.settings.levers import CustomLever

SERVERS = Resource(group="ml.example.org", version="v1", plural="servers", kind="Server")
ROOT = RootRef("Server", SPACE, "llm", "ml.example.org", "uid-x")
SIZED = CustomLever(
    group="ml.example.org", version="v1", plural="servers", kind="Server", replicas="spec.pool.size"
)
PAIR = CustomLever(
    group="ml.example.org",
    version="v1",
    plural="servers",
    kind="Server",
    pause={
        "spec": {"mode": "stopped", "grace": None},
        "metadata": {"annotations": {"ml.example.org/hold": "yes"}},
    },
    restore={
        "spec": {"mode": "serving"},
        "metadata": {"annotations": {"ml.example.org/hold": None}},
    },
    paused_when='spec.mode == "stopped"',
    ready_when="status.ready >= 1",
)


def stored(spec: dict[str, Json]) -> dict[str, Json]:
    meta: dict[str, Json] = {
        "name": "llm",
        "namespace": SPACE,
        "uid": "uid-x",
        "generation": 4,
        "annotations": {"team": "vision"},
    }
    return {"metadata": meta, "spec": spec}


class Scene:
    def __init__(self, lever: CustomLever, spec: dict[str, Json]) -> None:
        self.cluster = MemoryCluster()
        self.cluster.put(NAMESPACES, {"metadata": {"name": SPACE, "uid": "uid-space"}})
        self.cluster.put(SERVERS, stored(spec))
        self.actor = Actor(
            self.cluster,
            clock=ManualClock(),
            mode=Mode.SCALE_DOWN,
            levers=Levers.of_settings([lever]),
        )

    @property
    def live(self) -> dict[str, Json]:
        return self.cluster.stored(SERVERS, SPACE, "llm")

    @property
    def spec(self) -> dict[str, Json]:
        return tree(self.live["spec"])

    @property
    def notes(self) -> dict[str, Json]:
        return tree(tree(self.live["metadata"])["annotations"])

    def changed_by_somebody(self) -> None:
        meta = tree(self.live["metadata"]) | {"generation": 9}
        self.cluster.put(SERVERS, self.live | {"metadata": meta})

    async def pause(self) -> Result:
        order = PauseOrder(root=ROOT, decision_id="d-1", why="No GPU work.", by="jo")
        return (await self.actor.pause(order)).result

    async def restore(self) -> Result:
        return (await self.actor.restore(ROOT, by="jo", why="back")).result


async def test_a_size_anywhere_below_spec_is_taken_and_given_back() -> None:
    it = Scene(SIZED, {"pool": {"size": 3, "zone": "a"}})
    assert await it.pause() is Result.DONE
    assert it.spec == {"pool": {"size": 0, "zone": "a"}}
    assert await it.restore() is Result.DONE
    assert (it.spec, it.notes) == ({"pool": {"size": 3, "zone": "a"}}, {"team": "vision"})


async def test_without_a_size_there_is_nothing_to_take() -> None:
    it = Scene(SIZED, {"pool": {"zone": "a"}})
    assert await it.pause() is Result.REFUSED
    assert it.spec == {"pool": {"zone": "a"}}


async def test_a_pair_of_patches_stops_and_starts() -> None:
    it = Scene(PAIR, {"mode": "serving", "model": "m"})
    assert await it.pause() is Result.DONE
    assert it.spec == {"mode": "stopped", "model": "m"}
    assert it.notes["ml.example.org/hold"] == "yes"
    assert PAUSED in it.notes
    assert await it.pause() is Result.REFUSED
    assert await it.restore() is Result.DONE
    assert (it.spec, it.notes) == ({"mode": "serving", "model": "m"}, {"team": "vision"})


async def test_what_somebody_changed_after_our_pause_is_theirs() -> None:
    it = Scene(PAIR, {"mode": "serving"})
    assert await it.pause() is Result.DONE
    it.changed_by_somebody()
    assert await it.restore() is Result.REFUSED
    assert it.spec == {"mode": "stopped"}


async def test_its_gpuworkload_names_its_version() -> None:
    it = Scene(SIZED, {"pool": {"size": 3}})
    await it.pause()
    (name,) = it.cluster.names(GPUWORKLOADS)
    about = tree(tree(it.cluster.stored(GPUWORKLOADS, SPACE, name)["spec"])["rootRef"])
    assert about["apiVersion"] == "ml.example.org/v1"


async def test_without_the_setting_the_kind_has_no_lever() -> None:
    world = World()
    outcome = await world.actor.restore(ROOT, by="jo", why="back")
    assert outcome.result is Result.REFUSED
    assert "Server cannot be paused or resumed" in outcome.detail
