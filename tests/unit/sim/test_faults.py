from __future__ import annotations

import asyncio
from contextlib import aclosing
from http import HTTPStatus

import pytest
from support.caller import NO_ANSWER
from support.simulated import DEPLOYMENTS, PODS, Simulation, caller_of

from gpu_pruner.sim.cluster import CONTROLLER
from gpu_pruner.sim.faults import Fault, Trouble
from gpu_pruner.sim.tree import number

SERVE = f"{DEPLOYMENTS}/serve"


async def test_a_refusal_is_a_status_with_its_delay(simulation: Simulation) -> None:
    simulation.cluster.faults.add(
        Fault(path="/deployments", status=429, reason="TooManyRequests", retry_after_seconds=7)
    )
    answer = await simulation.caller.get(SERVE)
    assert (answer.status, answer.reason) == (HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests")
    assert answer.headers["Retry-After"] == "7"
    assert number(answer.body, "details", "retryAfterSeconds") == 7
    assert (await simulation.caller.get(PODS)).status == HTTPStatus.OK


async def test_it_strikes_as_often_as_told(simulation: Simulation) -> None:
    fault = simulation.cluster.faults.add(Fault(status=500, times=2))
    seen = [(await simulation.caller.get(SERVE)).status for _ in range(3)]
    assert seen == [500, 500, 200]
    assert fault.struck == 2


async def test_it_strikes_only_who_and_what_it_is_meant_for(simulation: Simulation) -> None:
    simulation.cluster.faults.add(
        Fault(user=CONTROLLER, method="PATCH|PUT", path="serve$", status=403, reason="Forbidden")
    )
    controller = caller_of(simulation.cluster, CONTROLLER)
    patch = {"metadata": {"labels": {"a": "b"}}}
    assert (await controller.patch(SERVE, patch)).status == HTTPStatus.FORBIDDEN
    assert (await controller.get(SERVE)).status == HTTPStatus.OK
    assert (await simulation.caller.patch(SERVE, patch)).status == HTTPStatus.OK
    await controller.close()


async def test_a_refused_write_changes_nothing(simulation: Simulation) -> None:
    for trouble in Trouble:
        if trouble in {Trouble.LATE, Trouble.STALL}:
            continue
        simulation.cluster.faults.add(Fault(trouble=trouble, times=1))
        await simulation.caller.patch(SERVE, {"spec": {"replicas": 0}})
        assert simulation.replicas("Deployment", "serve") == 2


async def test_a_page_of_a_proxy(simulation: Simulation) -> None:
    simulation.cluster.faults.add(Fault(trouble=Trouble.HTML, times=1))
    answer = await simulation.caller.get(SERVE)
    assert answer.status == HTTPStatus.OK
    assert answer.headers["Content-Type"].startswith("text/html")


async def test_garbage_is_not_json(simulation: Simulation) -> None:
    simulation.cluster.faults.add(Fault(trouble=Trouble.GARBAGE, times=1))
    answer = await simulation.caller.get(SERVE)
    assert answer.headers["Content-Type"] == "application/json"
    assert (answer.body, answer.raw) == ({}, b"\x00\xff not JSON\n")


@pytest.mark.parametrize("trouble", [Trouble.CUT, Trouble.REFUSED])
async def test_a_lost_connection_gives_no_answer(simulation: Simulation, trouble: Trouble) -> None:
    simulation.cluster.faults.add(Fault(trouble=trouble, times=1))
    assert (await simulation.caller.get(SERVE)).status == NO_ANSWER
    assert (await simulation.caller.get(SERVE)).status == HTTPStatus.OK


async def test_a_cut_watch_ends_in_the_middle_of_a_line(simulation: Simulation) -> None:
    simulation.cluster.faults.add(Fault(trouble=Trouble.CUT, times=1))
    async with aclosing(simulation.caller.watch(f"{DEPLOYMENTS}?watch=true")) as events:
        assert [one async for one in events] == []
    assert simulation.cluster.requests[-1].status == HTTPStatus.OK


@pytest.mark.parametrize("times", [None, 1])
async def test_a_stalled_request_is_served_when_the_fault_is_lifted(
    simulation: Simulation, times: int | None
) -> None:
    fault = simulation.cluster.faults.add(Fault(trouble=Trouble.STALL, times=times))
    waiting = asyncio.ensure_future(simulation.caller.get(SERVE))
    while not fault.struck:
        await asyncio.sleep(0)
    await simulation.clock.settle()
    assert not waiting.done()
    simulation.cluster.faults.clear()
    assert (await waiting).status == HTTPStatus.OK


async def test_a_late_answer_is_an_answer(simulation: Simulation) -> None:
    fault = Fault(path="serve", trouble=Trouble.LATE, latency_seconds=0.5)
    simulation.cluster.faults.add(fault)
    late = asyncio.ensure_future(simulation.caller.get(SERVE))
    while not fault.struck:
        await asyncio.sleep(0)
    assert (await simulation.caller.get(PODS)).status == HTTPStatus.OK
    assert not late.done()
    assert (await late).status == HTTPStatus.OK
