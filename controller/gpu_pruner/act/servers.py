"""Pausing a JupyterHub server: the Hub is asked to stop it, and to start it again.

There is no object to patch, so that the record is `status.pause` of the server's GPUWorkload,
written *before* the stop, with the start that it is about. The Hub takes no precondition: which
start is running is read again right before the stop, and the time between the two requests is what
remains of the race (`docs/explanation/levers.md`). Called by `act.actor`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from http import HTTPStatus

from gpu_pruner.act.announcing import Announcer
from gpu_pruner.act.checks import Freshness, no_record
from gpu_pruner.act.live import LiveOwner
from gpu_pruner.act.pause_record import MAX_BY, MAX_WHY
from gpu_pruner.act.ports import Cluster, Hub
from gpu_pruner.act.server_books import book_about, server_in
from gpu_pruner.act.wishes import wish_against
from gpu_pruner.errors import ActionRefused, Conflict, HubError, PrunerError
from gpu_pruner.jupyterhub.answers import HubServer
from gpu_pruner.kube.jupyterhub import server_of
from gpu_pruner.kube.resources import PODS
from gpu_pruner.kube.wire import Meta, OwnerMeta, Pod
from gpu_pruner.model import jupyterhub
from gpu_pruner.model.book import Book, PauseRecord
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.jupyterhub import ServerName
from gpu_pruner.model.orders import PauseOrder, Result
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.snapshot import Workload
from gpu_pruner.model.workload import PodPhase, RootRef

_OVER = frozenset({PodPhase.SUCCEEDED.value, PodPhase.FAILED.value})


@dataclass(frozen=True, slots=True)
class _Running:
    """A server as it is right now."""

    root: RootRef
    name: ServerName
    pod: Meta
    server: HubServer

    @property
    def top(self) -> LiveOwner:
        """Return what stands for the root object: people write their wishes on the pod."""
        notes, labels = self.pod.annotations, self.pod.labels
        return LiveOwner(metadata=OwnerMeta(name=self.root.name, labels=labels, annotations=notes))


@dataclass(frozen=True, slots=True, kw_only=True)
class JupyterServers:
    """Stops and starts servers."""

    client: Cluster
    announcer: Announcer
    clock: Clock
    mode: Mode
    protected: frozenset[str]
    hubs: tuple[Hub, ...] = ()

    async def pause(
        self, order: PauseOrder, book: Book | None, freshness: Freshness
    ) -> tuple[Result, str]:
        """Stop a server: its book says Pausing first, and has the record.

        Raises:
            ActionRefused, Conflict: nothing was changed, and the book says what it said before.
            HubError, ClusterError: no usable answer; the next cycle sees what happened.
        """
        hub = self._hub_of(order.root)
        found = await self._look(hub, order.root)
        await self._check(found, order.decided_on)
        current = await self.announcer.current(found.root, book)
        record = self._record(order, found)
        freshness.check(self.clock.now())
        who = f"the server of {found.name.told}"
        if self.mode is Mode.DRY_RUN:
            return Result.DRY_RUN, f"{who} would be stopped"
        before = await self.announcer.announce(found.root, current, record)
        try:
            await self._still(hub, found)
            freshness.check(self.clock.now())
        except PrunerError:
            await self.announcer.withdraw(found.root, before)
            raise
        try:
            await hub.stop(found.name)
        except HubError as error:
            if error.status is not None and error.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                await self.announcer.withdraw(found.root, before)
            raise
        return Result.DONE, f"{who} is being stopped"

    async def restore(self, root: RootRef, *, by: str, why: str) -> tuple[Result, str]:
        """Start a server that we stopped, with the options that it had.

        Raises:
            ActionRefused: there is no record that it was stopped by us.
            HubError, ClusterError: no usable answer.
        """
        hub = self._hub_of(root)
        kept = await book_about(self.announcer.books, self.client, root)
        name = server_in(kept)
        if kept is None or name is None:
            raise ActionRefused(
                "there is no record that it was stopped by us; its user can start it in the Hub"
            )
        server = await self._server(hub, name)
        if server is not None and server.is_stopping:
            raise ActionRefused("it is still being stopped; try again when that is over")
        who = f"the server of {name.told}"
        if server is not None:
            return Result.DONE, f"somebody started {who} already"
        if self.mode is Mode.DRY_RUN:
            return Result.DRY_RUN, f"{who} would be started"
        await hub.start(name)
        note = await self.announcer.note_restore(kept.root, kept.book, by=by, why=why)
        return Result.DONE, f"{who} is being started, with the options that it had{note}"

    async def recorded(self, root: RootRef) -> tuple[RootRef, PauseRecord]:
        """Return the record of a server's pause that stands; see `Actor.recorded`."""
        kept = await book_about(self.announcer.books, self.client, root)
        record = kept.book.pause if kept is not None else None
        if kept is None or record is None or server_in(kept) is None:
            raise ActionRefused(no_record(root))
        return kept.root, record

    async def _still(self, hub: Hub, found: _Running) -> None:
        """Pass where the very start that was looked at goes on.

        Raises:
            ActionRefused, Conflict: it does not.
            HubError: no usable answer.
        """
        if await self._server(hub, found.name) != found.server:
            raise Conflict("its server was started or stopped anew since the last look")

    def _hub_of(self, root: RootRef) -> Hub:
        for hub in self.hubs:
            if hub.namespace == root.namespace:
                return hub
        raise ActionRefused(
            f"no JupyterHub is set for namespace {root.namespace}; name it in jupyter_hubs"
        )

    async def _look(self, hub: Hub, root: RootRef) -> _Running:
        """Read a server as it is now, and its only pod.

        Raises:
            ActionRefused: there is no such pod, or there are several; or it does not just run.
        """
        claims = [one async for one in self._pods(root)]
        if not claims:
            raise ActionRefused(f"{root.ref} has no pod any more")
        if len(claims) > 1:
            names = " and ".join(sorted(pod.name for _, pod in claims)[:2])
            raise ActionRefused(f"{names} both say to be this server")
        [(name, pod)] = claims
        if pod.deletion_timestamp:
            raise ActionRefused("its pod is being deleted")
        server = await self._server(hub, name)
        if server is None:
            raise ActionRefused("its Hub says that it does not run")
        if not server.ready or not server.started:
            what = server.pending or "being ready"
            raise ActionRefused(f"its Hub still waits for it ({what})")
        about = RootRef(root.kind, root.namespace, root.name, jupyterhub.GROUP, name.uid)
        return _Running(about, name, pod, server)

    async def _pods(self, root: RootRef) -> AsyncIterator[tuple[ServerName, Meta]]:
        """Yield the live pods that say to be this server, whether they hold GPUs or not."""
        pages = self.client.list_pages(PODS, decode=Pod, namespace=root.namespace)
        async for page in pages:
            for pod in page.items:
                name = server_of(pod.metadata)
                if name is None or (pod.status and pod.status.phase in _OVER):
                    continue
                if root.uid == name.uid or (not root.uid and root.name == pod.metadata.name):
                    yield name, pod.metadata

    async def _check(self, found: _Running, known: Workload | None) -> None:
        """Pass where nothing that stands now is against a pause.

        Raises:
            ActionRefused: somebody or something says no.
            Conflict: it is not what was decided on.
        """
        root = found.root
        if root.namespace in self.protected:
            raise ActionRefused(f"namespace {root.namespace} is protected by the settings")
        now = self.clock.now()
        if wish := await wish_against(self.client, root, found.top, known=known, now=now):
            raise ActionRefused(wish)
        if known is None:
            return
        if found.pod.uid not in {pod.record.uid for pod in known.pods}:
            raise Conflict("its pod is another one than at the decision")
        started = known.owner.resource_version if known.owner else ""
        if started != found.server.started:
            raise Conflict("its server was started anew since the decision")

    def _record(self, order: PauseOrder, found: _Running) -> PauseRecord:
        former = {
            jupyterhub.USERNAME: found.name.user,
            jupyterhub.SERVERNAME: found.name.server,
            jupyterhub.STARTED: found.server.started,
        }
        return PauseRecord(
            lever=jupyterhub.KIND,
            replicas=None,
            uid=found.root.uid,
            generation=0,
            at=float(round(self.clock.now())),
            decision=order.decision_id,
            why=order.why[:MAX_WHY],
            by=order.by[:MAX_BY],
            former=former,
        )

    async def _server(self, hub: Hub, name: ServerName) -> HubServer | None:
        """Return a server as the Hub has it now.

        Raises:
            ActionRefused: the Hub has no such user.
        """
        try:
            return await hub.server(name)
        except HubError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                raise ActionRefused(str(error)) from error
            raise
