from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from support.lease_server import LeaseServer, Steps
from support.manual_clock import NOON, ManualClock

from gpu_pruner.errors import ClusterError, ConfigurationError, Forbidden, NotFound
from gpu_pruner.kube.lease import identity, lease_namespace
from gpu_pruner.kube.lease_elector import Elector, machine_seconds
from gpu_pruner.model.annotations import LAST_CYCLE
from gpu_pruner.settings.lease import LeaseSettings

SETTINGS = LeaseSettings()


@dataclass
class Machine:
    """Seconds that pass alike for all replicas, though their clocks tell different times."""

    at: float = 0.0
    replicas: dict[str, tuple[Elector, ManualClock]] = field(default_factory=dict)

    def replica(
        self,
        server: LeaseServer,
        name: str,
        *,
        ahead: float = 0.0,
        settings: LeaseSettings = SETTINGS,
    ) -> Elector:
        clock = ManualClock(NOON + ahead)
        elector = Elector(
            server.lease(), settings, identity=name, clock=clock, monotonic=lambda: self.at
        )
        self.replicas[name] = (elector, clock)
        return elector

    def pass_(self, seconds: float) -> None:
        self.at += seconds
        for _, clock in self.replicas.values():
            clock.at += seconds

    @property
    def leaders(self) -> list[str]:
        return [name for name, (elector, _) in self.replicas.items() if elector.term is not None]


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def server() -> LeaseServer:
    return LeaseServer()


async def follow(machine, *electors, seconds: float, every: float = 2.0) -> None:
    """Let replicas look every two seconds for a while."""
    end = machine.at + seconds
    while machine.at < end:
        machine.pass_(every)
        for one in electors:
            await one.attempt()


async def test_the_first_makes_the_lease_and_leads_and_the_second_waits(machine, server):
    a, b = machine.replica(server, "a"), machine.replica(server, "b")
    await a.attempt()
    await b.attempt()
    await follow(machine, a, b, seconds=60)
    assert machine.leaders == ["a"]
    assert b.holder == "a"
    spec = server.stored["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("a", 15)
    assert spec["acquireTime"] == "2026-01-31T12:00:00.000000Z"
    assert spec["renewTime"] == "2026-01-31T12:01:00.000000Z"
    assert spec["leaseTransitions"] == 0


async def test_a_leader_that_died_is_followed_after_the_lease_and_not_sooner(machine, server):
    a, b = machine.replica(server, "a"), machine.replica(server, "b")
    await a.attempt()
    await b.attempt()
    await follow(machine, b, seconds=14)
    assert machine.leaders == []
    await follow(machine, b, seconds=2)
    assert machine.leaders == ["b"]
    assert server.stored["spec"]["leaseTransitions"] == 1


async def test_a_leader_stops_before_anybody_could_follow(machine, server):
    a = machine.replica(server, "a")
    await a.attempt()
    a.begin_cycle()
    machine.pass_(9.9)
    assert a.seconds_left() == pytest.approx(0.1)
    machine.pass_(0.1)
    assert a.seconds_left() <= 0
    assert a.term is None


@pytest.mark.parametrize("ahead", [-86_400.0, -40.0, 40.0, 86_400.0])
async def test_clocks_that_differ_change_nothing(machine, server, ahead):
    a, b = machine.replica(server, "a"), machine.replica(server, "b", ahead=ahead)
    await a.attempt()
    await b.attempt()
    await follow(machine, a, b, seconds=120)
    assert machine.leaders == ["a"]
    await follow(machine, b, seconds=16)
    assert machine.leaders == ["b"]


async def test_who_asks_for_longer_is_waited_for(machine, server):
    long = LeaseSettings(duration_seconds=60, renew_deadline_seconds=40)
    a, b = machine.replica(server, "a", settings=long), machine.replica(server, "b")
    await a.attempt()
    await b.attempt()
    await follow(machine, b, seconds=58)
    assert machine.leaders == []
    await follow(machine, b, seconds=4)
    assert machine.leaders == ["b"]


async def test_a_leader_that_was_stopped_finds_its_fence_closed_and_stays_out(machine, server):
    a, b = machine.replica(server, "a"), machine.replica(server, "b")
    await a.attempt()
    await b.attempt()
    a.begin_cycle()
    await follow(machine, b, seconds=60)
    assert a.seconds_left() <= 0
    await a.attempt()
    await a.attempt()
    assert machine.leaders == ["b"]
    assert server.stored["spec"]["holderIdentity"] == "b"


async def test_what_was_decided_in_one_term_is_not_written_in_the_next(machine, server):
    a = machine.replica(server, "a")
    await a.attempt()
    first = a.begin_cycle()
    machine.pass_(60)
    await a.attempt()
    assert machine.leaders == ["a"], "nobody took it meanwhile"
    assert a.seconds_left() == 0, "but the cycle from before is over"
    a.complete_cycle(first, NOON + 60)
    second = a.begin_cycle()
    assert second is not first
    assert a.seconds_left() == 10
    assert second.last_cycle_at is None


async def test_an_answer_that_comes_too_late_is_no_term(machine, server):
    a, steps = machine.replica(server, "a"), Steps()
    server.stops = True
    for _ in range(4):  # before and after the look, and before and after the creation
        steps.go_on(a.attempt)
    assert server.stored is not None
    machine.pass_(11)
    steps.go_on(a.attempt)
    assert machine.leaders == []
    server.stops = False
    await a.attempt()
    assert machine.leaders == ["a"]


async def test_an_outage_ends_the_term_and_the_next_begins_with_the_stamp(machine, server):
    a = machine.replica(server, "a")
    await a.attempt()
    term = a.begin_cycle()
    a.complete_cycle(term, NOON + 5)
    machine.pass_(2)
    await a.attempt()
    server.down = True
    for _ in range(10):
        machine.pass_(2)
        with pytest.raises(ClusterError):
            await a.attempt()
    assert machine.leaders == []
    server.down = False
    await a.attempt()
    assert a.begin_cycle().last_cycle_at == NOON + 5


async def test_the_stamp_of_the_last_cycle_comes_with_the_renewal_and_goes_to_the_next_leader(
    machine, server
):
    a, b = machine.replica(server, "a"), machine.replica(server, "b")
    await a.attempt()
    await b.attempt()
    calls = len(server.calls)
    a.complete_cycle(a.begin_cycle(), NOON + 1.5)
    assert len(server.calls) == calls, "no request of its own"
    machine.pass_(2)
    await a.attempt()
    stamp = server.stored["metadata"]["annotations"][LAST_CYCLE]
    assert stamp == "2026-01-31T12:00:01.500000Z"
    await follow(machine, b, seconds=20)
    assert b.begin_cycle().last_cycle_at == NOON + 1.5
    await follow(machine, b, seconds=2)
    assert server.stored["metadata"]["annotations"][LAST_CYCLE] == stamp, "b completed none yet"


async def test_a_former_leader_does_not_put_its_old_stamp_over_a_newer_one(machine, server):
    a, b = machine.replica(server, "a"), machine.replica(server, "b")
    await a.attempt()
    a.complete_cycle(a.begin_cycle(), NOON + 1)
    await a.attempt()
    await b.attempt()
    await follow(machine, b, seconds=20)
    b.complete_cycle(b.begin_cycle(), NOON + 20)
    await follow(machine, b, seconds=2)
    await a.attempt()
    await follow(machine, a, seconds=20)
    assert machine.leaders == ["a"]
    assert a.begin_cycle().last_cycle_at == NOON + 20


@pytest.mark.parametrize("stamp", ["yesterday", "", "2026-01-31T12:00:00", "9999-12-31T23:59:59Z"])
async def test_a_stamp_that_is_no_time_is_no_stamp(machine, server, stamp):
    a, b = machine.replica(server, "a"), machine.replica(server, "b")
    await a.attempt()
    server.stored["metadata"]["annotations"] = {LAST_CYCLE: stamp}
    await b.attempt()
    await follow(machine, b, seconds=20)
    assert b.begin_cycle().last_cycle_at is None


async def test_an_edit_of_the_lease_costs_one_renewal_and_not_the_lead(machine, server):
    a = machine.replica(server, "a")
    await a.attempt()
    term = a.begin_cycle()
    server.edit(strategy="whatever")
    await follow(machine, a, seconds=8)
    assert a.begin_cycle() is term


async def test_a_lease_that_was_deleted_is_made_again(machine, server):
    a, b = machine.replica(server, "a"), machine.replica(server, "b")
    await a.attempt()
    await b.attempt()
    a.complete_cycle(a.begin_cycle(), NOON)
    server.stored = None
    with pytest.raises(NotFound):
        await a.attempt()
    await follow(machine, a, b, seconds=4)
    assert machine.leaders == ["a"]
    assert a.begin_cycle().last_cycle_at == NOON


async def test_a_lease_that_was_given_to_somebody_is_left_at_once(machine, server):
    a = machine.replica(server, "a")
    await a.attempt()
    server.edit(holderIdentity="b")
    machine.pass_(2)
    await a.attempt()
    machine.pass_(2)
    await a.attempt()
    assert machine.leaders == []


async def test_an_answer_that_was_lost_does_not_lock_us_out(machine, server):
    a = machine.replica(server, "a")
    server.losing = True
    with pytest.raises(ClusterError):
        await a.attempt()
    assert machine.leaders == []
    server.losing = False
    await a.attempt()
    assert machine.leaders == ["a"]


async def test_a_release_lets_the_next_follow_at_once_with_the_newest_stamp(machine, server):
    a, b = machine.replica(server, "a"), machine.replica(server, "b")
    await a.attempt()
    await b.attempt()
    a.complete_cycle(a.begin_cycle(), NOON + 3)
    await a.release()
    assert machine.leaders == []
    assert a.seconds_left() == 0
    await b.attempt()
    assert machine.leaders == ["b"]
    assert b.begin_cycle().last_cycle_at == NOON + 3


async def test_a_release_takes_nothing_from_another(machine, server):
    a, b = machine.replica(server, "a"), machine.replica(server, "b")
    await a.attempt()
    await b.attempt()
    await follow(machine, b, seconds=20)
    await a.release()
    assert server.stored["spec"]["holderIdentity"] == "b"


async def test_a_steady_leader_asks_once_per_renewal_and_a_follower_once_per_look(machine, server):
    a, b = machine.replica(server, "a"), machine.replica(server, "b")
    await a.attempt()
    await b.attempt()
    server.calls.clear()
    await follow(machine, a, b, seconds=60)
    assert server.calls.count("patch") == 30
    assert server.calls.count("get") == 30
    assert len(server.calls) == 60


@pytest.mark.parametrize(
    ("failure", "fix"),
    [
        (Forbidden("no", status=403), "grant get, create and patch"),
        (NotFound("namespaces not found", status=404), "kubectl create namespace"),
    ],
)
async def test_what_will_never_go_well_is_said_at_the_start(machine, server, failure, fix):
    a = machine.replica(server, "a")
    server.failure = failure
    with pytest.raises(ConfigurationError, match=fix):
        await a.start()


async def test_a_server_that_does_not_answer_at_the_start_is_waited_for(machine, server):
    a = machine.replica(server, "a")
    server.down = True
    await a.start()
    assert machine.leaders == []


async def test_the_block_gives_the_lease_back_after_its_work_has_ended(server):
    order = []

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(0)

    elector = Elector(server.lease(), SETTINGS, identity="a", clock=ManualClock(), sleep=sleep)
    await elector.start()

    async def work():
        async with elector.leading():
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                order.append(server.stored["spec"]["holderIdentity"])

    running = asyncio.create_task(work())
    await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert order == ["a"], "it was still ours while the work ended"
    assert server.stored["spec"]["holderIdentity"] == ""


async def test_an_error_of_our_own_ends_the_block_for_nobody_would_act_any_more(server):
    async def broken(seconds: float) -> None:
        raise ValueError("a bug")

    elector = Elector(server.lease(), SETTINGS, identity="a", clock=ManualClock(), sleep=broken)
    with pytest.raises(ExceptionGroup) as caught:
        async with elector.leading():
            await asyncio.Event().wait()
    assert caught.group_contains(ValueError)


async def test_an_error_of_the_block_leaves_it_as_itself_and_the_lease_is_given_back(server):
    elector = Elector(server.lease(), SETTINGS, identity="a", clock=ManualClock())
    await elector.start()
    with pytest.raises(ConfigurationError, match="wrong"):
        async with elector.leading():
            raise ConfigurationError("wrong")
    assert server.stored["spec"]["holderIdentity"] == ""


def test_the_clock_of_the_machine_goes_forward() -> None:
    assert machine_seconds() <= machine_seconds()


def test_two_of_one_name_are_told_apart() -> None:
    settings = LeaseSettings(identity="left")
    assert identity(settings, host="pod-1", ending="x") == "left_x"
    assert identity(SETTINGS, host="pod-1", ending="x") == "pod-1_x"


def test_the_namespace_is_the_one_that_was_set_or_ours_or_the_usual_one(tmp_path) -> None:
    file = tmp_path / "namespace"
    assert lease_namespace(SETTINGS, file=file) == "gpu-pruner-system"
    file.write_text("team-ops\n")
    assert lease_namespace(SETTINGS, file=file) == "team-ops"
    assert lease_namespace(LeaseSettings(namespace="other"), file=file) == "other"
