"""What a person does with kubectl, on both servers alike.

The simulated one takes JSON alone. kubectl sends protobuf where it knows a kind by heart, in
`kubectl create serviceaccount` and `kubectl auth can-i` for example: there it is refused with 415.
"""

from __future__ import annotations

import asyncio
import json

import pytest
from support.bodies import deployment, event, thing
from support.servers import Server

from gpu_pruner.sim.cluster import OPERATOR
from gpu_pruner.sim.tree import JsonObject, child, text, texts


@pytest.fixture
def anonymous() -> str:
    return OPERATOR


@pytest.fixture
async def path(server: Server) -> str:
    """Make a Deployment and return its path."""
    await server.caller.post(server.deployments, deployment())
    return f"{server.deployments}/server"


async def shown(server: Server, *arguments: str) -> JsonObject:
    found: JsonObject = json.loads(await server.kubectl("get", *arguments, "-o", "json"))
    return found


async def test_get_prints_a_table(server: Server, path: str) -> None:
    said = await server.kubectl("get", "deployments")

    head, row = said.splitlines()
    assert head.split()[0] == "NAME"
    assert head.split()[-1] == "AGE"
    assert row.split()[0] == "server"


async def test_a_custom_kind_is_printed_in_its_columns(server: Server, things: str) -> None:
    await server.caller.post(things, thing("one"))

    short = (await server.kubectl("get", "th")).splitlines()
    wide = (await server.kubectl("get", "things", "-o", "wide")).splitlines()

    assert short[0].split() == ["NAME", "OWNER", "AGE"]
    assert short[1].split()[:2] == ["one", "me"]
    assert wide[0].split() == ["NAME", "OWNER", "SIZE", "AGE"]


async def test_get_as_json_and_by_label(server: Server, path: str) -> None:
    await server.kubectl("label", "deployment/server", "color=red")

    found = await shown(server, "deployments", "-l", "color=red")

    assert found["kind"] == "List"
    assert texts(await shown(server, "deployment", "server"), "metadata", "labels") == {
        "color": "red"
    }


async def test_get_follows_changes(server: Server, things: str) -> None:
    await server.caller.post(things, thing("one"))
    process = await server.start_kubectl("get", "things", "-w", "--no-headers")
    assert process.stdout
    async with asyncio.timeout(60):
        assert (await process.stdout.readline()).split()[0] == b"one"
        await server.caller.post(things, thing("two"))
        assert (await process.stdout.readline()).split()[0] == b"two"
    process.terminate()
    await process.communicate()


async def test_describe_tells_of_events(server: Server) -> None:
    made = await server.caller.post(server.config_maps, {"metadata": {"name": "one"}})
    told = event("told", namespace=server.namespace, uid=made.uid)
    await server.caller.post(server.path("events"), told)

    said = await server.kubectl("describe", "configmap", "one")

    assert "Name:         one" in said
    assert "It is idle." in said


async def test_patch(server: Server, path: str) -> None:
    await server.kubectl("patch", "deployment/server", "-p", '{"spec":{"replicas":3}}')
    merge = ("--type=merge", "-p", '{"metadata":{"annotations":{"example.com/note":"x"}}}')
    await server.kubectl("patch", "deployment/server", *merge)

    found = await shown(server, "deployment", "server")
    assert child(found, "spec", "replicas") == 3
    assert texts(found, "metadata", "annotations")["example.com/note"] == "x"


async def test_scale(server: Server, path: str) -> None:
    said = await server.kubectl("scale", "deployment/server", "--replicas=0")
    refused = await server.kubectl(
        *("scale", "deployment/server", "--current-replicas=5", "--replicas=1"), fails=True
    )

    assert said == "deployment.apps/server scaled\n"
    assert "Expected replicas to be 5" in refused
    assert child(await shown(server, "deployment", "server"), "spec", "replicas") == 0


async def test_annotate_and_take_away(server: Server, path: str) -> None:
    await server.kubectl("annotate", "deployment/server", "example.com/note=x")
    noted = await shown(server, "deployment", "server")
    again = await server.kubectl("annotate", "deployment/server", "example.com/note=y", fails=True)
    await server.kubectl("annotate", "deployment/server", "example.com/note-")
    bare = await shown(server, "deployment", "server")

    assert texts(noted, "metadata", "annotations")["example.com/note"] == "x"
    assert "--overwrite" in again
    assert "example.com/note" not in texts(bare, "metadata", "annotations")


async def test_delete(server: Server) -> None:
    await server.caller.post(server.config_maps, {"metadata": {"name": "one"}})

    said = await server.kubectl("delete", "configmap/one")
    gone = await server.kubectl("get", "configmap/one", fails=True)

    assert said.startswith('configmap "one" deleted')
    assert gone == 'Error from server (NotFound): configmaps "one" not found\n'


async def test_create_from_a_file(server: Server) -> None:
    body = deployment() | {"apiVersion": "apps/v1", "kind": "Deployment"}

    said = await server.kubectl("create", "--validate=ignore", "-f", "-", stdin=json.dumps(body))

    assert said == "deployment.apps/server created\n"


async def test_wait_for_a_condition(server: Server, things: str) -> None:
    await server.caller.post(things, thing("one"))
    waiting = asyncio.create_task(
        server.kubectl("wait", "thing/one", "--for=jsonpath={.status.phase}=Done", "--timeout=60s")
    )
    await server.caller.patch(f"{things}/one/status", {"status": {"phase": "Done"}})

    assert "condition met" in await waiting


async def test_version_and_kinds(server: Server) -> None:
    version = json.loads(await server.kubectl("version", "-o", "json"))
    kinds = await server.kubectl("api-resources", "--api-group=apps", "-o", "name")

    assert text(version, "serverVersion", "minor") == "36"
    assert "deployments.apps" in kinds.split()
