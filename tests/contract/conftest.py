"""The two servers that must answer alike: the simulated one, and the lab's real one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.lab import Lab
from support.servers import Server, installed, real, simulated

from gpu_pruner.sim.tree import JsonObject

BOTH = ("sim", pytest.param("lab", marks=[pytest.mark.lab, pytest.mark.timeout(180)]))


@pytest.fixture(params=BOTH)
async def server(
    request: pytest.FixtureRequest, tmp_path: Path, anonymous: str
) -> AsyncIterator[Server]:
    """Has a namespace for this test alone."""
    if request.param == "sim":
        serving = simulated(tmp_path, anonymous=anonymous)
    else:
        lab: Lab = request.getfixturevalue("lab")
        serving = real(lab)
    async with serving as one:
        yield one


@pytest.fixture
def anonymous() -> str:
    """Return who somebody without a token is on the simulated server; on both it is nobody."""
    return ""


@pytest.fixture
async def things(server: Server, thing_crd: JsonObject) -> str:
    """Install a custom kind, and return the path of its objects in the test's namespace."""
    await installed(server.caller, thing_crd)
    return server.path("things", group="contract.example/v1")


@pytest.fixture
def thing_crd() -> JsonObject:
    spec: JsonObject = {
        "type": "object",
        "required": ["owner"],
        "properties": {
            "owner": {
                "type": "string",
                "maxLength": 8,
                "x-kubernetes-validations": [{"rule": "self == oldSelf"}],
            },
            "size": {"type": "integer", "minimum": 0, "maximum": 9},
            "color": {"type": "string", "default": "blue", "enum": ["blue", "red"]},
            "name": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2},
            "until": {"type": "string", "format": "date-time", "nullable": True},
            "tags": {"type": "object", "additionalProperties": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    status: JsonObject = {
        "type": "object",
        "properties": {"phase": {"type": "string"}, "size": {"type": "integer"}},
    }
    version: JsonObject = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
        },
        "additionalPrinterColumns": [
            {"name": "Owner", "type": "string", "jsonPath": ".spec.owner"},
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        "schema": {
            "openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.contract.example"},
        "spec": {
            "group": "contract.example",
            "scope": "Namespaced",
            "names": {
                "plural": "things",
                "singular": "thing",
                "kind": "Thing",
                "shortNames": ["th"],
            },
            "versions": [version],
        },
    }
