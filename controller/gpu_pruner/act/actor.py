"""Carrying out what was decided: the one place where workloads are changed.

Answers how an order ended. Never decides: it only refuses, when the last look at the live objects
says something else than the decision was made on. Nothing is retried and nothing is waited for;
what became of a patch is read off the lever object in a later cycle. Called by `loop`, and by
`cli` for a person's own order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping

from gpu_pruner.act.announcing import Announcer
from gpu_pruner.act.books import ClusterBook, NoBooks
from gpu_pruner.act.checks import (
    Freshness,
    changed_since,
    lever_refusal,
    no_record,
    nothing_to_restore,
    record_on,
    root_refusal,
    serves,
)
from gpu_pruner.act.levers import Levers
from gpu_pruner.act.patches import patch_of
from gpu_pruner.act.pause_record import MAX_BY, MAX_WHY
from gpu_pruner.act.ports import Cluster, Hub
from gpu_pruner.act.servers import JupyterServers
from gpu_pruner.act.targets import Target, look
from gpu_pruner.act.wishes import wish_against
from gpu_pruner.errors import ActionRefused, ClusterError, Conflict, HubError
from gpu_pruner.model import jupyterhub
from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.model.book import Book, PauseRecord
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.orders import Outcome, PauseOrder, Result
from gpu_pruner.model.plan import Decision
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.units import Seconds, Timestamp
from gpu_pruner.model.workload import RootRef


class Actor:
    """Pauses, restores and keeps the books."""

    def __init__(
        self,
        client: Cluster,
        *,
        clock: Clock,
        mode: Mode,
        protected: frozenset[str] = frozenset(),
        levers: Levers | None = None,
        hubs: Iterable[Hub] = (),
    ) -> None:
        """Take what every order needs.

        Args:
            client: the API server.
            clock: dates records and paces writes.
            mode: in dry run nothing but books is written.
            protected: namespaces in which nothing is ever paused.
            levers: those of the settings, too; None where there are none.
            hubs: the JupyterHubs whose servers may be stopped and started.
        """
        self._client = client
        self._clock = clock
        self._mode = mode
        self._protected = protected
        self._levers = levers or Levers()
        self._books = ClusterBook(client, clock=clock, levers=self._levers)
        self._announcer = Announcer(self._books)
        self._servers = JupyterServers(
            client=client,
            announcer=self._announcer,
            clock=clock,
            mode=mode,
            protected=protected,
            hubs=tuple(hubs),
        )

    async def write_book(self, decision: Decision, book: Book) -> Outcome:
        """Make the root's GPUWorkload say what the book says.

        Args:
            decision: whose root it is.
            book: what to write; its resourceVersion is the precondition.

        Returns:
            DONE; CONFLICT where the object changed since the book was read; REFUSED, with the
            fix, where there is nowhere to write; FAILED where the API server did not answer well.
        """
        root = decision.workload.root
        return await _concluded(root, "write-book", self._write_book(root, book))

    async def pause(
        self,
        order: PauseOrder,
        book: Book | None = None,
        *,
        verified_at: Timestamp | None = None,
        max_age_seconds: Seconds | None = None,
    ) -> Outcome:
        """Pause a root reversibly: its book says Pausing first, then one patch on the lever object.

        Args:
            order: which root, why, and by whom.
            book: what the decision was made on. None for a person's order: the root's GPUWorkload
                is then read, or created where the cluster has that kind.
            verified_at: when the evidence was last measured; None skips the check of its age.
            max_age_seconds: greatest age of that measurement at the moment of the patch.

        Returns:
            DONE; REFUSED where the live objects say no; CONFLICT where one of them changed;
            DRY_RUN, with what would have been done; FAILED where the API server did not answer
            well, in which case the next cycle reads off the lever object what happened.
        """
        freshness = Freshness(verified_at, max_age_seconds)
        return await _concluded(order.root, "pause", self._pause(order, book, freshness))

    async def restore(self, root: RootRef, *, by: str, why: str) -> Outcome:
        """Give back exactly what was taken, and end the record in the same patch.

        Args:
            root: which one; an empty uid means whatever has that name now.
            by: who ordered it. For anybody but the controller the book is written, too.
            why: a sentence for the book.

        Returns:
            As for `pause`. DONE also where somebody restarted it already.
        """
        return await _concluded(root, "restore", self._restore(root, by, why))

    async def recorded(self, root: RootRef) -> tuple[RootRef, PauseRecord]:
        """Return the record of a root's last pause of ours, with the root's uid.

        It need not be paused any more: a record stays until we restore, or it is paused anew.

        Args:
            root: an empty uid means whatever has that name now.

        Raises:
            ActionRefused: there is none, or no such root.
            ClusterError: no usable answer.
        """
        if root.kind == jupyterhub.KIND:
            return await self._servers.recorded(root)
        target = await look(self._client, self._levers, root)
        book = await self._book_of(target.root)
        records = (
            record_on(target.lever, target.live),
            record_on(target.own, target.top),
            book.pause if book else None,
        )
        for record in records:
            if record is not None:
                return target.root, record
        raise ActionRefused(no_record(target.root))

    async def _write_book(self, root: RootRef, book: Book) -> tuple[Result, str]:
        await self._books.write(root, book)
        return Result.DONE, ""

    async def _pause(
        self, order: PauseOrder, book: Book | None, freshness: Freshness
    ) -> tuple[Result, str]:
        if order.root.kind == jupyterhub.KIND:
            return await self._servers.pause(order, book, freshness)
        target = await look(self._client, self._levers, order.root)
        await self._check(order, target)
        current = await self._announcer.current(target.root, book)
        record = self._record(order, target)
        freshness.check(self._clock.now())
        if self._mode is Mode.DRY_RUN:
            return Result.DRY_RUN, f"would be paused; {_size(record)}"
        note = ""
        try:
            await self._announcer.announce(target.root, current, record)
        except NoBooks as error:
            note = f"; the controller will not know of it: {error}"
        freshness.check(self._clock.now())
        body = target.lever.pause_patch(target.live, record)
        await self._patch(target, body)
        return Result.DONE, f"being paused; {_size(record)}{note}"

    async def _check(self, order: PauseOrder, target: Target) -> None:
        """Pass where nothing that stands in the cluster now is against a pause.

        Raises:
            ActionRefused: somebody or something says no.
            Conflict: the root is not the one that was decided on.
            ClusterError: what people want could not be read.
        """
        root, top, known = target.root, target.top, order.decided_on
        if root.namespace in self._protected:
            raise ActionRefused(f"namespace {root.namespace} is protected by the settings")
        if refusal := (
            root_refusal(top)
            or lever_refusal(root, target.lever, target.live)
            or lever_refusal(root, target.own, top)
        ):
            raise ActionRefused(refusal)
        now = self._clock.now()
        if wish := await wish_against(self._client, root, top, known=known, now=now):
            raise ActionRefused(wish)
        if change := changed_since(known.owner if known else None, top):
            raise Conflict(change)

    async def _restore(self, root: RootRef, by: str, why: str) -> tuple[Result, str]:
        if root.kind == jupyterhub.KIND:
            return await self._servers.restore(root, by=by, why=why)
        target = await look(self._client, self._levers, root)
        if target.itself.is_paused_by_us:  # what governs it came after our pause
            target = target.itself
        on_object = record_on(target.lever, target.live)
        if not target.lever.is_paused(target.live):
            return await self._already_running(target, on_object)
        book = await self._book_of(target.root)
        records = (on_object, book.pause if book else None)
        record = next((one for one in records if serves(one, target.lever, target.live)), None)
        if record is None or not target.lever.is_pause_of(target.live, record):
            raise ActionRefused(nothing_to_restore(target.root))
        if self._mode is Mode.DRY_RUN:
            return Result.DRY_RUN, f"would be restored; {_size(record)}"
        await self._patch(target, target.lever.restore_patch(target.live, record))
        note = await self._announcer.note_restore(target.root, book, by=by, why=why)
        return Result.DONE, f"being restored; {_size(record)}{note}"

    async def _already_running(
        self, target: Target, on_object: PauseRecord | None
    ) -> tuple[Result, str]:
        detail = "somebody restarted it already"
        if on_object is None:
            return Result.DONE, "it is not paused; nothing to do"
        if self._mode is Mode.DRY_RUN:
            return Result.DRY_RUN, f"{detail}; the pause record would be removed"
        await self._patch(target, patch_of(target.live, annotations={PAUSED: None}))
        return Result.DONE, f"{detail}; the pause record was removed"

    async def _book_of(self, root: RootRef) -> Book | None:
        found = await self._books.read(root)
        return found.book if found and found.root.uid == root.uid else None

    def _record(self, order: PauseOrder, target: Target) -> PauseRecord:
        meta = target.live.metadata
        return PauseRecord(
            lever=target.lever.kind,
            replicas=target.lever.size(target.live),
            name="" if target.lever is target.own else meta.name,
            former=target.lever.former(target.live),
            uid=meta.uid,
            generation=meta.generation or 0,
            at=float(round(self._clock.now())),
            decision=order.decision_id,
            why=order.why[:MAX_WHY],
            by=order.by[:MAX_BY],
        )

    async def _patch(self, target: Target, body: Mapping[str, object]) -> None:
        meta = target.live.metadata
        await self._client.patch(target.lever.resource, meta.name, body, namespace=meta.namespace)


def _size(record: PauseRecord) -> str:
    if record.name:
        return f"through {record.lever} {record.name}"
    if record.replicas is None:
        return "it was running"
    return f"it had {record.replicas} replica{'' if record.replicas == 1 else 's'}"


async def _concluded(root: RootRef, action: str, doing: Awaitable[tuple[Result, str]]) -> Outcome:
    """Turn what was raised into an outcome, so that one root's trouble stays its own."""
    try:
        result, detail = await doing
    except ActionRefused as refusal:
        result, detail = Result.REFUSED, str(refusal)
    except Conflict as conflict:
        result, detail = Result.CONFLICT, str(conflict)
    except (ClusterError, HubError) as error:
        result, detail = Result.FAILED, str(error)
    return Outcome(root=root, action=action, result=result, detail=detail)
