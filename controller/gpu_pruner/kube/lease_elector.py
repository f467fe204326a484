"""Which replica leads: the one that holds the Lease, and only while that is certain.

Answers whether this replica may act, and closes the fence that its writes pass (`client.fenced`)
before anybody else could take the Lease. It never trusts another computer's clock: a renewal is a
change of the Lease, and how long it has not changed is measured here. So clocks may differ by any
amount, though not run at different speeds (client-go's assumption). It never acts and never
decides. `cli` starts it, `loop` asks it at the beginning of a cycle.

The leader counts from *before* it sent a renewal, and stops at the renew deadline. The others
count from *after* they saw that renewal, and wait for the longer lease duration. A process that
was stopped finds its fence closed when it wakes. What was decided in one term is never carried out
in a later one. Source: the Lease elector of client-go, whose own text says that it guarantees no
single leader: the resourceVersions of what is written do.

All waits are real seconds; only what is written for people is in time of the `Clock`.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

import structlog

from gpu_pruner.errors import (
    ClusterError,
    ConfigurationError,
    Conflict,
    Forbidden,
    NotFound,
    out_of_groups,
)
from gpu_pruner.kube.lease import LeaseObject, LeaseRecord, written
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.units import Seconds, Timestamp
from gpu_pruner.settings.lease import LeaseSettings

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_JITTER = 0.2
_RELEASE_SECONDS: Seconds = 3.0
"""How long an orderly end may wait for the Lease to be given back."""


def machine_seconds() -> Seconds:
    """Return seconds since some moment, which go on while the machine sleeps, where it can tell."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


@dataclass(slots=True, eq=False)
class Term:
    """One stretch of leading without a break. Once over, it stays over."""

    began_at: Timestamp
    last_cycle_at: Timestamp | None
    """When a leader last completed a cycle before it; None where nobody knows."""
    holds_until: Seconds
    """On the machine's clock."""


@dataclass(frozen=True, slots=True)
class _Sighting:
    """Since when the Lease has not changed, as far as was seen here."""

    version: str
    """Its resourceVersion. Not the time of its renewal: a clock may stand still or be set back."""
    at: Seconds
    """On the machine's clock."""


class Elector:
    """Competes for the Lease. `leading` runs it; `attempt` is one step of it."""

    def __init__(
        self,
        lease: LeaseObject,
        settings: LeaseSettings,
        *,
        identity: str,
        clock: Clock,
        monotonic: Callable[[], Seconds] = machine_seconds,
        sleep: Callable[[Seconds], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            lease: the object to compete for.
            settings: the times.
            identity: of this replica, and of no other.
            clock: for what people read.
            monotonic: seconds that never go back.
            sleep: waits for real seconds.
        """
        self.identity = identity
        self.won = asyncio.Event()
        """Set when a term begins, cleared by who waited for it."""
        self.holder = ""
        """Who leads, as far as was seen."""
        self._lease = lease
        self._settings = settings
        self._clock = clock
        self._monotonic = monotonic
        self._sleep = sleep
        self._known: LeaseRecord | None = None
        """What the Lease says, from our own last write; None where we have to look."""
        self._seen: _Sighting | None = None
        self._term: Term | None = None
        self._cycle: Term | None = None
        """The term in which the running cycle began."""
        self._last_cycle_at: Timestamp | None = None
        self._trouble = ""

    @property
    def term(self) -> Term | None:
        """Return the term that holds now; None where this replica must not act."""
        term = self._term
        return term if term is not None and term.holds_until > self._monotonic() else None

    def begin_cycle(self) -> Term | None:
        """Open the fence for one cycle, if a term holds.

        Returns:
            The term, outside of which nothing that this cycle decides will be written.
        """
        self._cycle = self.term
        return self._cycle

    def complete_cycle(self, term: object, at: Timestamp) -> None:
        """Note that a leader's cycle came to its end; the next renewal carries it to the Lease.

        Args:
            term: what `begin_cycle` returned for it. If that is over, nothing is noted.
            at: when.
        """
        if term is self.term:
            self._last_cycle_at = at

    def seconds_left(self) -> Seconds:
        """Return how long the running cycle's writes may still be under way; see `client.Fence`."""
        if self._cycle is None or self._cycle is not self._term:
            return 0.0
        return self._cycle.holds_until - self._monotonic()

    async def attempt(self) -> None:
        """Take or renew the Lease, if it is ours to take; else look who has it.

        Raises:
            ClusterError: it could not be read or written; nothing is known to have changed.
        """
        known = self._known or await self._look()
        self._known = None  # whatever goes wrong from here on, look again first
        if known is not None and not self._is_free(known):
            self._end("another replica leads")
            self.holder = known.holder
            return
        wanted = self._claim(known)
        asked_at = self._monotonic()
        try:
            stored = await self._lease.write(wanted, based_on=known)
        except Conflict:
            return  # somebody was faster, or edited it: the next look tells
        self._known = stored
        self.holder = self.identity
        ours = known is not None and known.holder == self.identity
        self._hold(wanted, until=asked_at + self._settings.renew_deadline_seconds, goes_on=ours)

    async def start(self) -> None:
        """Try once, to find out what would never go well.

        Raises:
            ConfigurationError: we may not use the Lease, or its namespace does not exist.
        """
        where = f"Lease {self._lease.name} in namespace {self._lease.namespace}"
        try:
            await self.attempt()
        except Forbidden as error:
            raise ConfigurationError(
                f"{where} may not be used, without which no replica may act: grant get, create and "
                "patch on leases.coordination.k8s.io as in deploy/kustomize/base, or name another "
                f"namespace with --lease-namespace. {error}"
            ) from error
        except NotFound as error:
            space = self._lease.namespace
            raise ConfigurationError(
                f"{where} cannot be made: kubectl create namespace {space}, or name another one "
                f"with --lease-namespace. {error}"
            ) from error
        except ClusterError as error:
            self._say(str(error))

    async def run(self) -> None:
        """Compete for ever; ends only by being cancelled. Gives nothing back: see `leading`."""
        while True:
            spread = 1 + _JITTER * (2 * random.random() - 1)  # noqa: S311 - it spreads load
            await self._sleep(self._settings.retry_seconds * spread)
            await self._guarded_attempt()

    async def release(self) -> None:
        """End the term, and say on the Lease that the next may take it at once."""
        self._end("this replica stops")
        try:
            known = self._known or await self._lease.read()
            if known is None or known.holder != self.identity:
                return
            free = replace(
                self._claim(known), holder="", duration_seconds=1.0, acquired=known.acquired
            )
            await self._lease.write(free, based_on=known)
        except ClusterError as error:
            _log.warning("lease not given back", why=str(error))

    @asynccontextmanager
    async def leading(self) -> AsyncIterator[None]:
        """Compete while the block runs; give the Lease back after the block has ended.

        An error of our own in the competition ends the block, too: nobody would act any more.
        """
        try:
            with out_of_groups():
                async with asyncio.TaskGroup() as group:
                    running = group.create_task(self.run())
                    yield
                    running.cancel()
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(_RELEASE_SECONDS):
                    await self.release()

    async def _guarded_attempt(self) -> None:
        """Try once; whatever goes wrong only means that the Lease was not renewed."""
        try:
            async with asyncio.timeout(self._settings.renew_deadline_seconds):
                await self.attempt()
        except (ClusterError, TimeoutError) as error:
            self._say(str(error) or "no answer in time")
        else:
            self._say("")
        if self._term is not None and self.term is None:
            self._end("it was not renewed in time")

    async def _look(self) -> LeaseRecord | None:
        """Read the Lease, and note since when its holder has been silent."""
        known = await self._lease.read()
        if known is not None:
            version = known.resource_version
            if self._seen is None or self._seen.version != version:
                self._seen = _Sighting(version, self._monotonic())
        return known

    def _is_free(self, known: LeaseRecord) -> bool:
        """Whether we may write the Lease: it is ours or nobody's, or its holder fell silent."""
        if known.holder in {"", self.identity}:
            return True
        asked = max(known.duration_seconds, self._settings.duration_seconds)
        silent = 0.0 if self._seen is None else self._monotonic() - self._seen.at
        return silent >= asked

    def _claim(self, known: LeaseRecord | None) -> LeaseRecord:
        """Return what the Lease has to say for us to lead."""
        now = written(self._clock.now())
        ours = known is not None and known.holder == self.identity
        return LeaseRecord(
            holder=self.identity,
            duration_seconds=self._settings.duration_seconds,
            acquired=known.acquired if known and ours else now,
            renewed=now,
            transitions=(known.transitions + (not ours)) if known else 0,
            last_cycle_at=self._last_cycle_at if ours or known is None else known.last_cycle_at,
        )

    def _hold(self, wrote: LeaseRecord, *, until: Seconds, goes_on: bool) -> None:
        """Prolong the term, or begin one where none holds any more.

        Args:
            wrote: what the Lease was made to say.
            until: how long that holds, on the machine's clock; the answer may have come too late.
            goes_on: whether the Lease was ours already.
        """
        term = self.term
        if term is not None and goes_on:
            term.holds_until = until
            return
        self._end("the Lease changed hands, or was not renewed in time")
        if until <= self._monotonic():
            return
        self._last_cycle_at = wrote.last_cycle_at
        self._term = Term(self._clock.now(), wrote.last_cycle_at, until)
        self.won.set()
        _log.info("leading", identity=self.identity)

    def _end(self, why: str) -> None:
        """End the term for good."""
        if self._term is not None:
            self._term = None
            _log.warning("leading no longer", identity=self.identity, why=why)

    def _say(self, trouble: str) -> None:
        """Log what is wrong with the Lease when it begins, and when it is over."""
        if trouble and not self._trouble:
            _log.warning("lease not renewed", why=trouble)
        elif self._trouble and not trouble:
            _log.info("lease is well again")
        self._trouble = trouble
