"""Misbehaviour on demand: which requests are delayed, refused, cut, left unanswered or garbled.

Faults are looked up by method, path and user before a request is served. Tests and the demo add
them to a running cluster. Latency and stalls are in real seconds, as network faults are.
Called by `serving`.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from enum import StrEnum

from gpu_pruner.model.units import Seconds
from gpu_pruner.sim.failures import ApiFailure


class Trouble(StrEnum):
    """What happens to a request that a fault matches."""

    LATE = "late"
    """Only the latency; then it is served."""
    STATUS = "status"
    """Refused with a `Status` body."""
    HTML = "html"
    """Answered 200 with a login page, as a proxy in the way would."""
    GARBAGE = "garbage"
    """Answered 200 with a line that is not JSON."""
    CUT = "cut"
    """The connection is closed in the middle of a line."""
    REFUSED = "refused"
    """The connection is closed without an answer."""
    STALL = "stall"
    """Nothing is sent, on open watches too, until the fault is removed."""


@dataclass(slots=True, kw_only=True, eq=False)
class Fault:
    """One rule of misbehaviour."""

    path: str = ""
    """Regular expression, searched in the path; empty: every path."""
    method: str = ""
    """Regular expression for the whole HTTP method, for example ``PATCH|POST``."""
    user: str = ""
    """Only requests of this user; empty: everybody."""
    trouble: Trouble = Trouble.STATUS
    status: int = 500
    reason: str = "InternalError"
    message: str = "the simulated server was told to fail"
    retry_after_seconds: int | None = None
    latency_seconds: Seconds = 0.0
    times: int | None = None
    """How many requests it strikes; None: all, until removed."""
    struck: int = field(default=0, init=False)
    """How many requests it has struck."""
    lifted: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    """Set when the fault is removed; a stalled request waits for it."""

    def matches(self, method: str, path: str, *, user: str) -> bool:
        """Tell whether a request is one that this fault is meant for."""
        return (
            (not self.user or self.user == user)
            and (not self.method or re.fullmatch(self.method, method) is not None)
            and re.search(self.path, path) is not None
        )

    def failure(self) -> ApiFailure:
        """Return the refusal of a `STATUS` fault."""
        return ApiFailure(
            self.status,
            self.reason,
            self.message,
            retry_after_seconds=self.retry_after_seconds,
        )


class Faults:
    """The faults that are in force."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._spent: list[Fault] = []

    def add(self, fault: Fault) -> Fault:
        """Put a fault into force, and return it."""
        self._faults.append(fault)
        return fault

    def remove(self, fault: Fault) -> None:
        """Lift a fault; nothing happens if it is not in force."""
        for faults in (self._faults, self._spent):
            if fault in faults:
                faults.remove(fault)
        fault.lifted.set()

    def clear(self) -> None:
        """Lift all faults."""
        for fault in (*self._faults, *self._spent):
            self.remove(fault)

    def strike(self, method: str, path: str, *, user: str) -> Fault | None:
        """Return the first fault that matches a request and count it, or None."""
        for fault in self._faults:
            if fault.matches(method, path, user=user):
                fault.struck += 1
                if fault.times is not None and fault.struck >= fault.times:
                    self._faults.remove(fault)
                    self._spent.append(fault)
                return fault
        return None

    async def until_lifted(self, method: str, path: str, *, user: str) -> None:
        """Wait until no stall holds back what is sent on this path. Does not count as a strike."""
        for fault in tuple(self._faults):
            if fault.trouble is Trouble.STALL and fault.matches(method, path, user=user):
                await fault.lifted.wait()
