"""The two verbs that touch the world: notify, then act.

Called by `loop.cycle` with a finished plan. The order within one workload is what keeps promises:
a warning is delivered before its book says so, a book says Pausing before the lever is pulled
(`act.actor` sees to that), and a lever that failed leaves a book that the next cycle settles.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpu_pruner.loop.books import Books
from gpu_pruner.loop.ports import Actor, Notifier
from gpu_pruner.model.book import Phase
from gpu_pruner.model.orders import Delivery, MessageKind, Outcome, PauseOrder, Result
from gpu_pruner.model.plan import Action, Decision, Plan
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.verdict import Reason

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

    async def notify(self, plan: Plan) -> tuple[Delivery, ...]:
        """Deliver every message of the plan.

        Returns:
            One delivery per message, in plan order; `via` is empty where nobody was reached.
        """
        deliveries: list[Delivery] = []
        for decision in plan.decisions:
            kind = _message_kind(decision)
            if kind is not None:
                deliveries.append(await self.notifier.deliver(decision, kind))
        return tuple(deliveries)

    async def act(self, plan: Plan, deliveries: tuple[Delivery, ...]) -> tuple[Outcome, ...]:
        """Pause, restore and write books.

        Args:
            plan: the finished plan.
            deliveries: what `notify` returned for it.

        Returns:
            One outcome per write that was tried.
        """
        reached = {one.root.uid: one.via for one in deliveries if one.kind is MessageKind.WARNING}
        outcomes: list[Outcome] = []
        for decision in sorted(plan.decisions, key=_urgency):
            outcome = await self._act_on(decision, reached.get(decision.workload.root.uid, ()))
            if outcome is not None:
                outcomes.append(outcome)
        return tuple(outcomes)

    async def _act_on(self, decision: Decision, reached: tuple[str, ...]) -> Outcome | None:
        match decision.action:
            case Action.PAUSE:
                return await self._pause(decision)
            case Action.RESTORE:
                return await self._restore(decision)
            case Action.WARN if not reached:
                return Outcome(
                    root=decision.workload.root,
                    action="warn",
                    result=Result.FAILED,
                    detail=Reason.NOT_DELIVERED.rule,
                )
            case Action.WARN:
                return await self.books.write(decision, replace(decision.book, warned_via=reached))
            case Action.NONE | Action.REMIND | Action.CANCEL | Action.VERIFY:
                if decision.book == decision.workload.book:
                    return None
                return await self.books.write(decision, decision.book)

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

    async def _restore(self, decision: Decision) -> Outcome:
        outcome = await self.actor.restore(
            decision.workload.root, by=_OURSELVES, why=decision.message
        )
        if outcome.result is not Result.DONE:
            return outcome
        written = await self.books.write(decision, decision.book)
        if written.result in {Result.DONE, Result.DRY_RUN}:
            return outcome
        return replace(outcome, detail=f"its GPUWorkload was not told: {written.detail}")


class Silence:
    """The notifier of a single dry pass: it reaches nobody, so nobody counts as warned."""

    async def deliver(self, decision: Decision, kind: MessageKind) -> Delivery:
        """Deliver nothing."""
        detail = "nothing is sent where nothing may be written"
        return Delivery(root=decision.workload.root, kind=kind, detail=detail)


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
