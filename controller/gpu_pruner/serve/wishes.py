"""The routes that write: what people want of a workload. A bearer token says who asks.

Each reads a wish from a body, has `People` find out who asks and whether they may, and has it
written. It never decides anything: a wish is heard in the next cycle, and capped there.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, TypeVar

import msgspec
from typing_extensions import override

from gpu_pruner.act.intents import (
    LONGEST_REASON,
    Exempt,
    Keep,
    Kind,
    Release,
    Wish,
    Withdrawal,
)
from gpu_pruner.decide.release import RELEASE_STANDS
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.kube.reviews import Person
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.plan import Decision
from gpu_pruner.model.units import Seconds, Timestamp, rfc3339
from gpu_pruner.record.board import Board
from gpu_pruner.serve.handlers import ReadHandler, find
from gpu_pruner.serve.people import People, Refusal
from gpu_pruner.settings.durations import parse_length

T = TypeVar("T")

Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_REASON)]


class WithdrawRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body that takes a wish back, on each of the routes."""

    withdraw: bool
    """``true``."""
    reason: Reason
    """Why, for those who wonder."""


class KeepRequest(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"length": "for"}
):
    """The body of a keep."""

    length: str
    """How long from now, as ``4h`` or ``90m``."""
    reason: Reason
    """Why, for those who wonder."""


class ExemptRequest(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"length": "for"}
):
    """The body of an exemption."""

    reason: Reason
    """Why, for those who wonder."""
    length: str | None = None
    """How long from now, as ``30d``; without it, it is for good."""


class ReleaseRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a release."""

    reason: Reason
    """Why, for those who wonder."""


class WishAnswer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The answer to a wish: what was written. Times are RFC 3339, UTC."""

    ref: str
    by: str
    """Who asked, as the API server knows them."""
    keep_until: str | None = None
    """End of a keep, as asked for."""
    exempt_until: str | None = None
    """End of an exemption; absent where it is for good."""
    release_at: str | None = None
    """Moment of a release: it is about the pods that are there now."""
    honoured_until: str | None = None
    """How long it is honoured: a keep as the settings cap it, a release for half an hour."""
    withdrawn: str | None = None
    """What was taken back: ``keep``, ``exempt`` or ``release``."""


class WishHandler(ReadHandler):
    """What the routes share: who asks, about what, and how a refusal is told."""

    kind: Kind
    example: str
    """A body, for whoever sent another."""

    @override
    def initialize(
        self, board: Board, clock: Clock, people: People | None = None, cap: Seconds = 0.0
    ) -> None:
        """Take who finds out who asks, and the longest keep that is honoured."""
        super().initialize(board, clock)
        self.people = people
        self.cap = cap

    @override
    async def post(self, kind: str = "", namespace: str = "", name: str = "") -> None:
        """Answer 200 once the wish is written; 400, 401, 403, 404, 409 or 503 with the reason."""
        try:
            self.answer(await self._taken(f"{kind.lower()}/{namespace}/{name}", namespace))
        except Refusal as refusal:
            if refusal.status == HTTPStatus.UNAUTHORIZED:
                self.set_header("WWW-Authenticate", "Bearer")
            self.answer({"error": str(refusal)}, status=refusal.status)

    def wish(self, by: str, now: Timestamp) -> Wish:
        """Read the wish that the body holds.

        Raises:
            Refusal: it holds none.
        """
        raise NotImplementedError

    def read(self, kind: type[T]) -> T | WithdrawRequest:
        """Return the body as a request of some kind, or as one that takes a wish back.

        Raises:
            Refusal: it is neither.
        """
        try:
            fields = msgspec.json.decode(self.request.body)
            if not (isinstance(fields, dict) and "withdraw" in fields):
                return msgspec.convert(fields, kind)
            withdrawal = msgspec.convert(fields, WithdrawRequest)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise self.bad(error) from error
        if not withdrawal.withdraw:
            raise self.bad("withdraw is true, or not there")
        return withdrawal

    def bad(self, error: object) -> Refusal:
        """Return the refusal of a body that is no wish."""
        return Refusal(HTTPStatus.BAD_REQUEST, f"{error}; send {self.example}")

    def moment(self, length: str, now: Timestamp) -> Timestamp:
        """Return the end of a length of time from now.

        Raises:
            Refusal: it is none.
        """
        try:
            return now + parse_length(length)
        except ConfigurationError as error:
            raise self.bad(error) from error

    async def _taken(self, ref: str, namespace: str) -> WishAnswer:
        scheme, _, token = self.request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise Refusal(HTTPStatus.UNAUTHORIZED, "send a bearer token: kubectl create token …")
        if self.people is None:
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "wishes are not taken here")
        person = await self.people.admitted(token.strip(), namespace)
        found = find(self.board, ref)
        if found is None:
            raise Refusal(HTTPStatus.NOT_FOUND, f"{ref[:200]} holds no GPU in the latest cycle")
        return await self._written(self.people, person, found)

    async def _written(self, people: People, person: Person, found: Decision) -> WishAnswer:
        now = self.clock.now()
        wish, root = self.wish(person.name, now), found.workload.root
        if isinstance(wish, Release):
            await people.may_pause(person, root)
        await people.wish(root, wish, object_name=found.workload.book.object_name)
        return answer_to(root.ref, wish, now=now, cap=self.cap)


def answer_to(ref: str, wish: Wish, *, now: Timestamp, cap: Seconds) -> WishAnswer:
    """Return the answer to a wish that was written; the command line prints the same.

    Args:
        ref: of the workload.
        wish: as it was written.
        now: Unix seconds.
        cap: the longest keep that is honoured, in seconds.
    """
    match wish:
        case Keep():
            honoured = rfc3339(min(wish.until, now + cap))
            until = rfc3339(wish.until)
            return WishAnswer(ref, wish.by, keep_until=until, honoured_until=honoured)
        case Exempt():
            end = None if wish.until is None else rfc3339(wish.until)
            return WishAnswer(ref, wish.by, exempt_until=end)
        case Release():
            honoured = rfc3339(wish.at + RELEASE_STANDS)
            at = rfc3339(wish.at)
            return WishAnswer(ref, wish.by, release_at=at, honoured_until=honoured)
        case Withdrawal():
            return WishAnswer(ref, wish.by, withdrawn=wish.of.value)


class KeepHandler(WishHandler):
    """`/api/v1/workloads/{kind}/{namespace}/{name}/keep`: keep a workload for a while."""

    kind = Kind.KEEP
    example = '{"for": "4h", "reason": "a demonstration"}'

    @override
    def wish(self, by: str, now: Timestamp) -> Wish:
        """Read a keep."""
        asked = self.read(KeepRequest)
        if isinstance(asked, WithdrawRequest):
            return Withdrawal(of=self.kind, by=by, reason=asked.reason)
        return Keep(until=self.moment(asked.length, now), by=by, reason=asked.reason)


class ExemptHandler(WishHandler):
    """`/api/v1/workloads/{kind}/{namespace}/{name}/exempt`: never pause it, or not until a time."""

    kind = Kind.EXEMPT
    example = '{"reason": "serves a course", "for": "30d"}'

    @override
    def wish(self, by: str, now: Timestamp) -> Wish:
        """Read an exemption."""
        asked = self.read(ExemptRequest)
        if isinstance(asked, WithdrawRequest):
            return Withdrawal(of=self.kind, by=by, reason=asked.reason)
        until = None if asked.length is None else self.moment(asked.length, now)
        return Exempt(until=until, by=by, reason=asked.reason)


class ReleaseHandler(WishHandler):
    """`/api/v1/workloads/{kind}/{namespace}/{name}/release`: give its GPUs back without a wait."""

    kind = Kind.RELEASE
    example = '{"reason": "done for today"}'

    @override
    def wish(self, by: str, now: Timestamp) -> Wish:
        """Read a release; its moment is a whole second, because it is written so."""
        asked = self.read(ReleaseRequest)
        if isinstance(asked, WithdrawRequest):
            return Withdrawal(of=self.kind, by=by, reason=asked.reason)
        return Release(at=float(int(now)), by=by, reason=asked.reason)
