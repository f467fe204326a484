from __future__ import annotations

from contextlib import aclosing
from http import HTTPStatus

from support.manual_clock import NOON
from support.simulated import CONFIG_MAPS, DEPLOYMENTS, Simulation, caller_of

from gpu_pruner.sim.cluster import CONTROLLER, OPERATOR
from gpu_pruner.sim.faults import Fault, Trouble

SERVE = f"{DEPLOYMENTS}/serve"


async def test_every_request_is_noted_with_its_verb(simulation: Simulation) -> None:
    caller = simulation.caller
    await caller.get(DEPLOYMENTS)
    await caller.get(SERVE)
    await caller.post(CONFIG_MAPS, {"metadata": {"name": "one"}})
    await caller.put(f"{CONFIG_MAPS}/one", {"metadata": {"name": "one"}, "data": {"a": "b"}})
    await caller.patch(f"{SERVE}/status", {"status": {}})
    await caller.delete(f"{CONFIG_MAPS}/one")
    async with aclosing(caller.watch(f"{DEPLOYMENTS}?watch=1")) as events:
        await anext(events)
    noted = [(one.verb, one.resource, one.name, one.status) for one in simulation.cluster.requests]
    assert noted == [
        ("list", "deployments", "", 200),
        ("get", "deployments", "serve", 200),
        ("create", "configmaps", "", 201),
        ("update", "configmaps", "one", 200),
        ("patch", "deployments", "serve", 200),
        ("delete", "configmaps", "one", 200),
        ("watch", "deployments", "", 200),
    ]
    patch = simulation.cluster.requests[4]
    assert (patch.user, patch.group, patch.namespace) == (OPERATOR, "apps", "team-a")
    assert (patch.subresource, patch.body, patch.at) == ("status", b'{"status": {}}', NOON)


async def test_only_accepted_writes_count_as_writes(simulation: Simulation) -> None:
    caller = simulation.caller
    await caller.get(SERVE)
    await caller.patch(SERVE, {"metadata": {"uid": "another"}})
    await caller.patch(f"{SERVE}?dryRun=All", {"spec": {"replicas": 0}})
    assert not any(one.is_write for one in simulation.cluster.requests)
    await caller.patch(SERVE, {"spec": {"replicas": 0}})
    assert [one.is_write for one in simulation.cluster.requests] == [False, False, False, True]


async def test_who_has_no_token_may_read_health_and_version_alone(simulation: Simulation) -> None:
    nobody = caller_of(simulation.cluster, user="")
    answer = await nobody.patch(SERVE, {"spec": {"replicas": 0}})
    assert (answer.status, answer.reason) == (HTTPStatus.FORBIDDEN, "Forbidden")
    assert simulation.cluster.requests[-1].user == "system:anonymous"
    assert (await nobody.get("/version")).status == HTTPStatus.OK
    assert (await nobody.get("/readyz")).raw == b"ok"
    await nobody.close()


async def test_users_are_told_apart(simulation: Simulation) -> None:
    controller = caller_of(simulation.cluster, CONTROLLER)
    await controller.get(SERVE)
    await simulation.caller.get(SERVE)
    assert [one.user for one in simulation.cluster.requests] == [CONTROLLER, OPERATOR]
    await controller.close()


async def test_a_request_without_an_answer_is_noted_too(simulation: Simulation) -> None:
    simulation.cluster.faults.add(Fault(trouble=Trouble.REFUSED))
    await simulation.caller.patch(SERVE, {"spec": {"replicas": 0}})
    noted = simulation.cluster.requests[-1]
    assert (noted.verb, noted.status, noted.is_write) == ("patch", 0, False)


async def test_scrapes_are_not_requests_of_the_api(simulation: Simulation) -> None:
    path = simulation.cluster.exporter_urls[0].removeprefix(simulation.cluster.url)
    await simulation.caller.get(path)
    assert simulation.cluster.requests == []
