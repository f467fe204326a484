"""The two verbs that touch the world: notify, then act.

Called by `loop.cycle` with a finished plan. The order within one workload is what keeps promises:
a warning is delivered before its book says so, a book says Pausing before the lever is pulled
(`act.actor` sees to that), and a lever that failed leaves a book that the next cycle settles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from gpu_pruner.loop.alerts import Alerts, is_over, noted
from gpu_pruner.loop.books import Books
from gpu_pruner.loop.ports import Actor, Notifier
from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.letters import Letter
from gpu_pruner.model.orders import Delivery, MessageKind, Outcome, PauseOrder, Result
from gpu_pruner.model.plan import Action, Decision, Plan
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.verdict import Reason
from gpu_pruner.model.workload import RootRef

_OURSELVES = "gpu-pruner"
"""Who orders what no person ordered."""
_MESSAGES = {
    Action.WARN: MessageKind.WARNING,
    Action.REMIND: MessageKind.REMINDER,
    Action.CANCEL: MessageKind.CANCELLED,
}
_ARRIVALS = {
    (Phase.PAUSING, Phase.PAUSED): MessageKind.PAUSED,
    (Phase.RESTORING, Phase.WATCHING): MessageKind.RESTORED,
}
"""Messages about something that was seen to have happened, not about something ordered."""


@dataclass(frozen=True, slots=True)
class Executor:
    """Carries out plans."""

    notifier: Notifier
    actor: Actor
    books: Books
    rules: Rules
    alerts: Alerts = field(default_factory=Alerts)

    async def notify(self, plan: Plan) -> tuple[Delivery, ...]:
        """Deliver every message of the plan, and what was not confirmed before.

        Returns:
            One delivery per message; `via` is empty where nobody was reached.
        """
        warned = frozenset(
            one.workload.root for one in plan.decisions if one.book.phase is Phase.WARNED
        )
        letters = (*_letters(plan), *self.alerts.of_the_gone(plan))
        deliveries = await self.notifier.deliver(letters, warned=warned)
        self.alerts.remember(plan, deliveries)
        return deliveries

    async def act(self, plan: Plan, deliveries: tuple[Delivery, ...]) -> tuple[Outcome, ...]:
        """Pause, restore and write books.

        Args:
            plan: the finished plan.
            deliveries: what `notify` returned for it.

        Returns:
            One outcome per write that was tried.
        """
        told: dict[RootRef, list[Delivery]] = {}
        for one in deliveries:
            told.setdefault(one.root, []).append(one)
        outcomes: list[Outcome] = []
        for decision in sorted(plan.decisions, key=_urgency):
            outcome = await self._act_on(decision, told.get(decision.workload.root, []))
            if outcome is not None:
                outcomes.append(outcome)
        return tuple(outcomes)

    async def _act_on(self, decision: Decision, told: Sequence[Delivery]) -> Outcome | None:
        book = noted(decision.book, told)
        warning = next((one for one in told if not one.is_repeat), None)
        match decision.action:
            case Action.PAUSE:
                return await self._pause(decision)
            case Action.RESTORE:
                return await self._restore(decision, book)
            case Action.WARN:
                if warning and warning.reached(self.rules.delivering_channels):
                    return await self.books.write(decision, replace(book, warned_via=warning.via))
                return await self._unheard(decision, told)
            case Action.NONE | Action.REMIND | Action.CANCEL | Action.VERIFY:
                if book == decision.workload.book:
                    return None
                return await self.books.write(decision, book)

    async def _unheard(self, decision: Decision, told: Sequence[Delivery]) -> Outcome:
        """Leave the clock where it is; whoever reads the book finds why, written once."""
        before, reason = decision.workload.book, Reason.NOT_DELIVERED
        book = noted(before, told)
        if before.phase is Phase.NOMINATED and before.reason != reason.value:
            problems = "; ".join(one.problem for one in told if one.problem)
            why = f"{reason.rule} {problems or 'No channel takes it'}. {before.message}"
            book = replace(book, reason=reason.value, message=why)
        if book != before:
            await self.books.write(decision, book)
        return Outcome(
            root=decision.workload.root, action="warn", result=Result.FAILED, detail=reason.rule
        )

    async def _pause(self, decision: Decision) -> Outcome:
        order = PauseOrder(
            root=decision.workload.root,
            decision_id=decision.decision_id,
            why=decision.message,
            by=_by(decision),
            decided_on=decision.workload,
        )
        outcome = await self.actor.pause(
            order,
            decision.workload.book,
            verified_at=decision.verified_at,
            max_age_seconds=self.rules.verify_max_age_seconds,
        )
        if outcome.result in {Result.CONFLICT, Result.REFUSED}:
            self.books.forget(order.root)
        return outcome

    async def _restore(self, decision: Decision, book: Book) -> Outcome:
        outcome = await self.actor.restore(
            decision.workload.root, by=_OURSELVES, why=decision.message
        )
        if outcome.result is not Result.DONE:
            return outcome
        written = await self.books.write(decision, book)
        if written.result in {Result.DONE, Result.DRY_RUN}:
            return outcome
        return replace(outcome, detail=f"its GPUWorkload was not told: {written.detail}")


class Silence:
    """The notifier of a single dry pass: it reaches nobody, so nobody counts as warned."""

    async def deliver(
        self,
        letters: Sequence[Letter],
        *,
        warned: frozenset[RootRef],  # noqa: ARG002 - as the port has it
    ) -> tuple[Delivery, ...]:
        """Deliver nothing."""
        detail = "nothing is sent where nothing may be written"
        return tuple(Delivery(root=one.root, kind=one.kind, detail=detail) for one in letters)


def _letters(plan: Plan) -> Iterator[Letter]:
    """Yield what the decisions of a plan have people told, and the silent ends of alerts."""
    for decision in plan.decisions:
        root, kind, alerts_in = (
            decision.workload.root,
            _message_kind(decision),
            decision.book.alerts_in,
        )
        if kind is not None:
            yield Letter(root=root, kind=kind, decision=decision)
        elif alerts_in and is_over(decision.book):
            kind = MessageKind.CANCELLED
            yield Letter(root=root, kind=kind, decision=decision, only=frozenset(alerts_in))


def _by(decision: Decision) -> str:
    """Return who ordered a pause: whoever released the workload, or nobody but the controller."""
    release = decision.workload.intent.release
    if decision.reason is not Reason.RELEASED or release is None:
        return _OURSELVES
    return release.by or "somebody"


def _urgency(decision: Decision) -> int:
    """Return what goes first: a pause rests on evidence that ages, books are paced and can wait."""
    order = (Action.PAUSE, Action.RESTORE, Action.WARN)
    return order.index(decision.action) if decision.action in order else len(order)


def _message_kind(decision: Decision) -> MessageKind | None:
    arrival = _ARRIVALS.get((decision.workload.book.phase, decision.book.phase))
    if arrival is MessageKind.RESTORED and decision.reason is not Reason.RESTORED:
        return None
    return _MESSAGES.get(decision.action, arrival)
