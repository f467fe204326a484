from __future__ import annotations

import pytest
from support.decisions import a_decision

from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.orders import Delivery, MessageKind, Outcome, Result
from gpu_pruner.model.plan import Action, Decision, Plan
from gpu_pruner.model.verdict import Reason
from gpu_pruner.record.aftermath import TROUBLE, turned_out

BEFORE = Book(phase=Phase.WARNED, warned_at=1.0)
AFTER = Book(phase=Phase.PAUSING, paused_at=2.0)


def ended(decision: Decision, result: Result, *, via: tuple[str, ...] = ("event",)) -> Decision:
    root = decision.workload.root
    outcome = Outcome(root=root, action=decision.action.value, result=result, detail="because.")
    told = Delivery(root=root, kind=MessageKind.WARNING, via=via, detail="no answer")
    return turned_out(Plan(at=0.0, decisions=(decision,)), [outcome], [told]).decisions[0]


@pytest.mark.parametrize("action", [Action.PAUSE, Action.RESTORE])
@pytest.mark.parametrize("result", sorted(TROUBLE))
def test_an_act_that_did_not_happen_says_so(action: Action, result: Result) -> None:
    shown = ended(a_decision(action=action, before=BEFORE, book=AFTER), result)
    assert (shown.reason, shown.book) == (Reason.REFUSED, BEFORE)
    assert shown.message.startswith(f"The {action.value} did not happen ({result.value}). because.")
    assert shown.action is action, "what was ordered is counted as ordered"


@pytest.mark.parametrize("result", [Result.DONE, Result.DRY_RUN])
def test_what_was_carried_out_stays_as_decided(result: Result) -> None:
    decision = a_decision(action=Action.PAUSE, before=BEFORE, book=AFTER)
    assert ended(decision, result) == decision


def test_a_warning_that_nobody_stored_is_not_shown_as_given() -> None:
    decision = a_decision(
        reason=Reason.WARNING, action=Action.WARN, before=Book(phase=Phase.NOMINATED), book=BEFORE
    )
    unwritten = ended(decision, Result.CONFLICT)
    assert (unwritten.book.phase, unwritten.reason) == (Phase.NOMINATED, Reason.WARNING)
    assert "could not be remembered. because" in unwritten.message
    unheard = ended(decision, Result.FAILED, via=())
    assert (unheard.book.phase, unheard.reason) == (Phase.NOMINATED, Reason.NOT_DELIVERED)
    assert unheard.message.endswith("no answer")
