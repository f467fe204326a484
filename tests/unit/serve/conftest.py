"""A listener that takes wishes, and an API server that knows one person."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
from support.decisions import SERVER, a_decision, a_report
from support.manual_clock import ManualClock
from support.memory_cluster import MemoryCluster
from tornado.httpclient import AsyncHTTPClient

from gpu_pruner.kube.resources import NAMESPACES, Resource
from gpu_pruner.record.board import Board
from gpu_pruner.serve.app import Listener, Voices, application
from gpu_pruner.serve.people import Desk

PATH = f"/api/v1/workloads/deployment/{SERVER.namespace}/{SERVER.name}"
TOKEN = "canary-token"
DAY = 86_400.0


@dataclass
class Cluster(MemoryCluster):
    """Knows one person, and what they may do."""

    name: str = "ada"
    may: bool = True
    may_not_patch: set[str] = field(default_factory=set)
    """Plurals."""
    asked: list[Mapping] = field(default_factory=list)
    hold: asyncio.Event | None = None

    async def create(self, resource: Resource, body: Mapping, *, namespace: str = "") -> bytes:
        if resource.kind not in {"TokenReview", "SubjectAccessReview"}:
            return await super().create(resource, body, namespace=namespace)
        self.asked.append(body["spec"])
        if self.hold is not None:
            await self.hold.wait()
        self._fail("create", resource)
        if resource.kind == "TokenReview":
            known = body["spec"]["token"] == TOKEN
            user = {"username": self.name, "uid": "u-1", "groups": ["team-a"]} if known else {}
            return json.dumps({"status": {"authenticated": known, "user": user}}).encode()
        resource_asked_for = body["spec"]["resourceAttributes"]["resource"]
        allowed = self.may and resource_asked_for not in self.may_not_patch
        return json.dumps({"status": {"allowed": allowed}}).encode()


@pytest.fixture
def cluster():
    made = Cluster()
    made.put(NAMESPACES, {"metadata": {"name": SERVER.namespace}})
    return made


@pytest.fixture
def desk():
    return Desk()


@pytest.fixture
async def post_to(cluster, desk):
    """Return what posts a body to a route of the workload, and returns status and answer."""
    board = Board()
    board.publish(replace(a_report(a_decision()), leading=False))
    desk.open(cluster)
    app = application(board, ManualClock(), keep_cap_seconds=DAY, voices=Voices(people=desk))
    listener = Listener(app, address="127.0.0.1", port=0)
    client = AsyncHTTPClient(force_instance=True)

    async def send(path, body, *, token=f"Bearer {TOKEN}", method="POST"):
        content = body if isinstance(body, str) else json.dumps(body)
        answer = await client.fetch(
            f"http://127.0.0.1:{listener.port}{path}",
            method=method,
            headers={"Authorization": token} if token else {},
            body=content if method == "POST" else None,
            raise_error=False,
        )
        return answer.code, json.loads(answer.body)

    yield send
    client.close()
    await listener.close()
