"""When somebody else decides about a workload's size: leave it to them.

It answers what it means that a paused workload has a size again. A person's restart is no contest:
a new window begins. A controller that puts back what its source says would put it back every time,
and every time a warning, a pause and a start would be for nothing. It only looks at who wrote the
size last. `settling` calls it.

Source: ARCHITECTURE section 6, contested.
"""

from __future__ import annotations

from dataclasses import replace

from gpu_pruner.decide.standing import Standing, Step
from gpu_pruner.decide.wording import clock_time
from gpu_pruner.model.book import Phase
from gpu_pruner.model.units import HOUR, Seconds
from gpu_pruner.model.verdict import Reason
from gpu_pruner.model.workload import OwnerObject

HANDS_OFF: Seconds = 7 * 24 * HOUR

_SOON: Seconds = HOUR
"""A pause that is taken back later than this was taken back by somebody who came to work."""

_CONTROLLERS = (
    "argocd",
    "kustomize-controller",
    "helm-controller",
    "flux",
    "kube-controller-manager",
    "keda",
    "fleet",
    "kapp-controller",
    "crossplane",
)
"""Beginnings of the field managers of controllers that set sizes: GitOps and autoscalers."""

_PEOPLE = ("kubectl", "oc", "Mozilla", "k9s", "Lens", "Headlamp", "gpu-pruner")
"""Beginnings of the field managers of tools that people hold in their hands, and of our own."""


def taken_back(standing: Standing, owner: OwnerObject) -> Step:
    """Return the step of a paused workload that has a size again.

    Args:
        standing: in phase Pausing or Paused.
        owner: the root object, which is not halted.
    """
    manager, book, now = owner.sized_by, standing.book, standing.now
    known = manager.startswith(_CONTROLLERS)
    soon = book.paused_at is not None and now - book.paused_at <= _SOON
    unknown = bool(manager) and not known and not manager.startswith(_PEOPLE)
    again = unknown and soon and manager == book.reverted_by
    if not known and not again:
        book = replace(book, reverted_by=manager if unknown and soon else "")
        why = (Reason.RESTARTED, Reason.RESTARTED.rule)
        return standing.enter(Phase.WATCHING, why, book=book)
    until = now + HANDS_OFF
    told = f"{manager} took the pause back; it is left alone until {clock_time(until, now=now)}"
    book = replace(book, contested_by=manager, contested_until=until, reverted_by="")
    return standing.enter(Phase.WATCHING, (Reason.CONTESTED, told), book=book)
