"""One sample of each kind of message, about a workload that does not exist.

For whoever wants to see what a channel delivers before it matters. Called by `cli.notifying`.
"""

from __future__ import annotations

from gpu_pruner.model.orders import SEVERITIES, MessageKind, Severity
from gpu_pruner.model.units import MINUTE, Seconds, Timestamp
from gpu_pruner.model.workload import RootRef
from gpu_pruner.notify.messages import EVENT_REASONS, Message

ORDER = (
    MessageKind.WARNING,
    MessageKind.REMINDER,
    MessageKind.PAUSED,
    MessageKind.RESTORED,
    MessageKind.CANCELLED,
)
"""As in the life of a matter, so that an alert which a sample opens is closed by another."""

_NOTICE: Seconds = 15 * MINUTE
_ABOUT = "This is a test of the channel. There is no such workload, and nothing has to be done."


def sample(kind: MessageKind, *, now: Timestamp) -> Message:
    """Return a message that says in every line that it is a test; two have two keys."""
    root = RootRef("Deployment", "gpu-pruner-test", "sample", "apps", f"sample-{round(now)}")
    asks = SEVERITIES[kind] is Severity.WARNING
    return Message(
        root=root,
        kind=kind,
        occasion=f"test {round(now)}",
        at=now,
        deadline=now + _NOTICE if asks else None,
        is_rehearsal=True,
        reason=EVENT_REASONS[kind],
        title=f"Test: {kind.value} about {root.kind} {root.namespace}/{root.name}",
        text=f"{_ABOUT} Its kind is: {kind.value}.",
    )
