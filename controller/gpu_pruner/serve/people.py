"""What people ask for over HTTP: who they are, whether they may, and writing it down.

The API server says who somebody is (TokenReview) and whether they may (SubjectAccessReview on
`gpuworkloads` in the namespace). Every replica takes wishes, whether it leads or not. This never
decides anything about a workload, keeps no token, and logs none. The handlers call it.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Protocol, TypeVar

import structlog

from gpu_pruner.act.intents import Wish, Withdrawal, ask
from gpu_pruner.act.levers import Levers
from gpu_pruner.act.ports import Cluster
from gpu_pruner.errors import ActionRefused, ClusterError
from gpu_pruner.kube.resources import GPUWORKLOADS, resource_for
from gpu_pruner.kube.reviews import Person, may, owner_of
from gpu_pruner.model.workload import RootRef

T = TypeVar("T")

_log = structlog.get_logger(__name__)
_AT_ONCE = 8
"""Requests under way; more are asked to come again, so that nobody can flood the API server."""


class Refusal(Exception):
    """Why a request is not granted, as an HTTP status and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class People(Protocol):
    """What the handlers need."""

    async def admitted(self, token: str, namespace: str) -> Person:
        """Return who asks, if they may change GPUWorkloads there.

        Raises:
            Refusal: they may not, or it cannot be found out now.
        """
        ...

    async def may_pause(self, person: Person, root: RootRef) -> None:
        """Pass where somebody may change the workload itself, which a release leads to.

        Raises:
            Refusal: they may not, or it cannot be found out now.
        """
        ...

    async def wish(self, root: RootRef, wish: Wish, *, object_name: str) -> None:
        """Write a wish down.

        Raises:
            Refusal: it cannot be written.
        """
        ...


class Desk:
    """Takes wishes from the moment on that there is an API server to ask; the real `People`."""

    def __init__(self, levers: Levers | None = None) -> None:
        """Take the levers of the settings: where their kinds live; None where there are none."""
        self._client: Cluster | None = None
        self._levers = levers or Levers()
        self._under_way = 0

    def open(self, client: Cluster) -> None:
        """Take wishes from now on.

        Args:
            client: of its own, with no fence: a replica that does not lead writes them, too.
        """
        self._client = client

    async def admitted(self, token: str, namespace: str) -> Person:
        """Return who asks, if they may; see `People`."""
        return await self._asked(self._admitted(token, namespace))

    async def may_pause(self, person: Person, root: RootRef) -> None:
        """Pass where somebody may change the workload itself; see `People`."""
        await self._asked(self._may_pause(person, root))

    async def wish(self, root: RootRef, wish: Wish, *, object_name: str) -> None:
        """Write a wish down; see `People`."""
        levers = self._levers
        await self._asked(ask(self._open(), root, wish, levers=levers, object_name=object_name))
        what = f"{wish.of.value} withdrawn" if isinstance(wish, Withdrawal) else type(wish).__name__
        _log.info("wish", what=what.lower(), ref=root.ref, by=wish.by, reason=wish.reason)

    async def _may_pause(self, person: Person, root: RootRef) -> None:
        client, lever = self._open(), self._levers.find(root.kind, root.group)
        resource = lever.resource if lever else resource_for(root.group, root.kind)
        if resource is None:
            raise Refusal(409, f"{root.kind} cannot be paused, so there is nothing to release")
        space = root.namespace
        if not await may(person, client, verb="patch", resource=resource, namespace=space):
            raise Refusal(
                403,
                f"{person.name} may not patch {resource.full_name} in {space}, "
                "and a release pauses one",
            )

    async def _admitted(self, token: str, namespace: str) -> Person:
        client = self._open()
        person = await owner_of(token, client)
        if person is None:
            raise Refusal(401, "the API server does not know this token")
        if not await may(person, client, verb="patch", resource=GPUWORKLOADS, namespace=namespace):
            raise Refusal(
                403, f"{person.name} may not patch {GPUWORKLOADS.full_name} in {namespace}"
            )
        return person

    def _open(self) -> Cluster:
        if self._client is None:
            raise Refusal(503, "not connected to the API server yet")
        return self._client

    async def _asked(self, asking: Coroutine[None, None, T]) -> T:
        """Carry out one of a few requests at a time, and say what went wrong without details."""
        if self._under_way >= _AT_ONCE:
            asking.close()
            raise Refusal(429, "too many requests at once; come again")
        self._under_way += 1
        try:
            return await asking
        except ActionRefused as error:
            raise Refusal(409, str(error)) from error
        except ClusterError as error:
            _log.warning("wish not taken", why=str(error))
            raise Refusal(503, "the API server did not answer as it should; see the log") from error
        finally:
            self._under_way -= 1
