from __future__ import annotations

from http import HTTPStatus

import pytest
from support.caller import Answer
from support.simulated import CONFIG_MAPS, DEPLOYMENTS, NOTEBOOKS, PODS, Simulation

from gpu_pruner.sim.tree import child, elements, mapping, number, text

PARTIAL = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


async def make(simulation: Simulation, count: int) -> None:
    for index in range(count):
        labels = {"color": "red" if index % 2 else "blue"}
        metadata: dict[str, object] = {"name": f"one-{index}", "labels": labels}
        await simulation.caller.post(CONFIG_MAPS, {"metadata": metadata})


def names(answer: Answer) -> list[str]:
    return [text(one, "metadata", "name") for one in elements(answer.body, "items")]


async def test_pages_show_one_state_whatever_changes_meanwhile(simulation: Simulation) -> None:
    await make(simulation, 5)
    first = await simulation.caller.get(f"{CONFIG_MAPS}?limit=2")
    assert names(first) == ["one-0", "one-1"]
    assert number(first.body, "metadata", "remainingItemCount") == 3

    await simulation.caller.delete(f"{CONFIG_MAPS}/one-3")
    token = text(first.body, "metadata", "continue")
    second = await simulation.caller.get(f"{CONFIG_MAPS}?limit=2&continue={token}")
    token = text(second.body, "metadata", "continue")
    third = await simulation.caller.get(f"{CONFIG_MAPS}?limit=2&continue={token}")
    assert names(second) + names(third) == ["one-2", "one-3", "one-4"]
    assert first.version == second.version == third.version
    assert "continue" not in mapping(third.body, "metadata")


async def test_a_forgotten_list_has_expired(simulation: Simulation) -> None:
    await make(simulation, 3)
    first = await simulation.caller.get(f"{CONFIG_MAPS}?limit=2")
    simulation.cluster.forget_history()
    token = text(first.body, "metadata", "continue")
    answer = await simulation.caller.get(f"{CONFIG_MAPS}?limit=2&continue={token}")
    assert (answer.status, answer.reason) == (HTTPStatus.GONE, "Expired")
    assert answer.body["kind"] == "Status"


async def test_items_of_built_in_kinds_do_not_name_their_kind(simulation: Simulation) -> None:
    built_in = await simulation.caller.get(DEPLOYMENTS)
    custom = await simulation.caller.get(NOTEBOOKS)
    assert built_in.body["kind"] == "DeploymentList"
    assert "kind" not in elements(built_in.body, "items")[0]
    assert elements(custom.body, "items")[0]["kind"] == "Notebook"


async def test_an_object_names_its_kind(simulation: Simulation) -> None:
    answer = await simulation.caller.get(f"{DEPLOYMENTS}/serve")
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("Deployment", "apps/v1")


async def test_metadata_alone_where_that_is_accepted(simulation: Simulation) -> None:
    answer = await simulation.caller.get(PODS, accept=PARTIAL)
    assert answer.body["kind"] == "PartialObjectMetadataList"
    for item in elements(answer.body, "items"):
        assert item.keys() == {"kind", "apiVersion", "metadata"}


async def test_rows_where_those_are_accepted(simulation: Simulation) -> None:
    await simulation.clock.advance(60.0)
    answer = await simulation.caller.get(f"{DEPLOYMENTS}/serve", accept=TABLE)
    columns = [one["name"] for one in elements(answer.body, "columnDefinitions")]
    assert columns == ["Name", "Desired", "Ready", "Age"]
    assert elements(answer.body, "rows")[0]["cells"] == ["serve", 2, 2, "121m"]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("color=red", ["one-1", "one-3"]),
        ("color==blue", ["one-0", "one-2"]),
        ("color!=red", ["one-0", "one-2"]),
        ("color%20in%20(red,green)", ["one-1", "one-3"]),
        ("color%20notin%20(red,green)", ["one-0", "one-2"]),
        ("color", ["one-0", "one-1", "one-2", "one-3"]),
        ("!color", []),
        ("color%20in%20(red,blue),color!=blue", ["one-1", "one-3"]),
    ],
)
async def test_label_selectors(simulation: Simulation, selector: str, expected: list[str]) -> None:
    await make(simulation, 4)
    answer = await simulation.caller.get(f"{CONFIG_MAPS}?labelSelector={selector}")
    assert names(answer) == expected


async def test_field_selectors_that_the_kind_supports(simulation: Simulation) -> None:
    on_second = await simulation.caller.get("/api/v1/pods?fieldSelector=spec.nodeName=node-2")
    elsewhere = await simulation.caller.get("/api/v1/pods?fieldSelector=spec.nodeName!=node-2")
    assert names(on_second)
    assert sorted(names(on_second) + names(elsewhere)) == sorted(
        text(pod, "metadata", "name") for pod in simulation.cluster.all("Pod")
    )


async def test_a_field_that_cannot_be_selected_is_refused(simulation: Simulation) -> None:
    answer = await simulation.caller.get(f"{DEPLOYMENTS}?fieldSelector=spec.replicas=2")
    assert answer.status == HTTPStatus.BAD_REQUEST
    assert "spec.replicas" in text(answer.body, "message")


@pytest.mark.parametrize("path", ["/apis/nowhere.example/v1/things", "/nonsense"])
async def test_a_path_that_is_no_resource_is_plain_text(simulation: Simulation, path: str) -> None:
    answer = await simulation.caller.get(path)
    assert answer.status == HTTPStatus.NOT_FOUND
    assert answer.headers["Content-Type"].startswith("text/plain")


async def test_an_absent_object_is_a_status(simulation: Simulation) -> None:
    answer = await simulation.caller.get(f"{DEPLOYMENTS}/absent")
    assert (answer.status, answer.reason) == (HTTPStatus.NOT_FOUND, "NotFound")
    assert child(answer.body, "details") == {
        "name": "absent",
        "group": "apps",
        "kind": "deployments",
    }


async def test_discovery_names_what_is_served(simulation: Simulation) -> None:
    groups = await simulation.caller.get("/apis")
    apps = await simulation.caller.get("/apis/apps/v1")
    assert "apps" in [one["name"] for one in elements(groups.body, "groups")]
    served = [text(one, "name") for one in elements(apps.body, "resources")]
    assert {"deployments", "deployments/status", "deployments/scale"} <= set(served)


async def test_the_date_is_the_simulated_one(simulation: Simulation) -> None:
    answer = await simulation.caller.get(DEPLOYMENTS)
    assert answer.headers["Date"] == "Sat, 31 Jan 2026 12:00:00 GMT"
