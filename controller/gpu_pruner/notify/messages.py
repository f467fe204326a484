"""What owners are told: one pure function from a decision to a message.

Answers: which words, for each `MessageKind`. The evidence is the decision's own sentence, so that
a message, the API and `kubectl get gpw` never disagree. What one can do about it stands in every
message and is never cut; only the evidence is. Never sends anything. Called by `notify.notifier`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from gpu_pruner.kube.gpuworkloads import name_for
from gpu_pruner.model.commands import exempt_command, keep_command, resume_command
from gpu_pruner.model.orders import SEVERITIES, MessageKind, Severity
from gpu_pruner.model.plan import Decision
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.units import HOUR, MINUTE, Seconds, Timestamp, rfc3339
from gpu_pruner.model.workload import RootRef
from gpu_pruner.notify.text import cut, inert

MOST_BYTES = 1024
"""Longest text. Source: the API server's limit on an Event's note (kubernetes/kubernetes#98175)."""

MOST_TITLE_BYTES = 200
"""Longest title: one line of a chat program."""

LEAST_EVIDENCE_BYTES = 160
"""Room that the evidence always has; beyond it the second way to keep a workload is left out."""

KEEP_FOR: Seconds = 4 * HOUR
"""The keep that a message offers: an afternoon."""

REHEARSAL = "Rehearsal: "
"""Begins every warning of a dry run, and what follows from it."""

EVENT_REASONS = {
    MessageKind.WARNING: "GpuIdleWarning",
    MessageKind.REMINDER: "GpuIdleReminder",
    MessageKind.CANCELLED: "GpuIdleWarningCancelled",
    MessageKind.PAUSED: "GpuIdlePaused",
    MessageKind.RESTORED: "GpuIdleRestored",
}
"""The Event reason of each kind of message: CamelCase, at most 128 bytes."""

_SEEN_TO_HAPPEN = frozenset({MessageKind.PAUSED, MessageKind.RESTORED})
"""Messages about what the root object shows, never about an order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message, ready for any channel: plain text without mark-up.

    `kind` is its stage in the life of one matter; `occasion` says of which idle spell or pause it
    is, and stays the same across a crash, so that a channel can tell a repeat from news.
    """

    root: RootRef
    """What it is about."""
    kind: MessageKind
    occasion: str
    at: Timestamp
    """When it was written, Unix seconds."""
    deadline: Timestamp | None
    """When the pause is due; None where none is."""
    is_rehearsal: bool
    reason: str
    """A value of `EVENT_REASONS`."""
    title: str
    """One line."""
    text: str
    """At most `MOST_BYTES`."""

    @property
    def severity(self) -> Severity:
        """Return how much it asks of its reader."""
        return SEVERITIES[self.kind]

    @property
    def key(self) -> str:
        """Return what is the same for every repeat of this message, and for no other message."""
        mode = Mode.DRY_RUN if self.is_rehearsal else Mode.SCALE_DOWN
        told = f"{self.root.uid}\n{self.kind.value}\n{mode.value}\n{self.occasion}"
        return hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()[:32]


def message_for(decision: Decision, kind: MessageKind, *, mode: Mode, now: Timestamp) -> Message:
    """Return what to tell the owner of a workload: the same words in every channel.

    Args:
        decision: what was decided; its `book` has the deadline, its `message` the evidence.
        kind: what the message is about.
        mode: in dry run a warning is called a rehearsal, and says ``would``. What was seen to
            happen is told as it was: a person may pause in any mode.
        now: Unix seconds; the deadline is also told relative to it.
    """
    rehearsal = mode is Mode.DRY_RUN and kind not in _SEEN_TO_HAPPEN
    prefix = REHEARSAL if rehearsal else ""
    news = _news(decision, kind, rehearsal=rehearsal, now=now)
    root = decision.workload.root
    name = inert(f"{root.kind} {root.namespace}/{root.name}")
    opening = f"{REHEARSAL}{news}" if rehearsal else f"{news[0].upper()}{news[1:]}"
    return Message(
        root=root,
        kind=kind,
        occasion=occasion(decision, kind),
        at=now,
        deadline=decision.book.pause_at if SEVERITIES[kind] is Severity.WARNING else None,
        is_rehearsal=rehearsal,
        reason=EVENT_REASONS[kind],
        title=cut(f"{prefix}{name}: {news}", MOST_TITLE_BYTES),
        text=_text(opening, _sentence(decision), _ways(decision, kind, now=now)),
    )


def farewell(root: RootRef, *, mode: Mode, now: Timestamp) -> Message:
    """Return what ends the matter of a workload that is gone."""
    news = "is gone, so its idle warning is void."
    name = inert(f"{root.kind} {root.namespace}/{root.name}")
    return Message(
        root=root,
        kind=MessageKind.CANCELLED,
        occasion="gone",
        at=now,
        deadline=None,
        is_rehearsal=mode is Mode.DRY_RUN,
        reason=EVENT_REASONS[MessageKind.CANCELLED],
        title=cut(f"{name}: {news}", MOST_TITLE_BYTES),
        text=f"The workload {news}",
    )


def occasion(decision: Decision, kind: MessageKind) -> str:
    """Return what a message is about, in words that stay the same across a crash.

    Returns:
        For a pause, its decision id; for a warning, when the idle spell was first noticed.
    """
    books = (decision.workload.book, decision.book)
    if kind in _SEEN_TO_HAPPEN:
        pauses = (book.pause for book in books)
        return next((pause.decision for pause in pauses if pause), decision.decision_id)
    spells = (book.nominated_at for book in books)
    # Rounded as a stored book is: the value must not change when it is read back.
    return next((rfc3339(round(at)) for at in spells if at is not None), decision.decision_id)


def duration(seconds: Seconds) -> str:
    """Write a length of time as people say it, rounded to whole minutes.

    Returns:
        For example ``15 minutes``, ``1 hour 5 minutes`` or ``less than a minute``.
    """
    minutes = int((max(0.0, seconds) + MINUTE / 2) // MINUTE)
    if minutes == 0:
        return "less than a minute"
    hours, minutes = divmod(minutes, 60)
    parts = [_counted(hours, "hour")] * bool(hours) + [_counted(minutes, "minute")] * bool(minutes)
    return " ".join(parts)


def _sentence(decision: Decision) -> str:
    """Return the decision's own sentence, harmless and with its full stop."""
    evidence = inert(decision.message)
    return evidence if not evidence or evidence[-1] in ".!?" else f"{evidence}."


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _news(decision: Decision, kind: MessageKind, *, rehearsal: bool, now: Timestamp) -> str:
    """Return the first sentence: what happens, to how many GPUs, and when."""
    gpus = _counted(decision.workload.gpus or decision.book.gpus, "GPU")
    would = "would be" if rehearsal else "will be"
    match kind:
        case MessageKind.WARNING | MessageKind.REMINDER:
            return f"idle on {gpus}, {would} paused {_when(decision.book.pause_at, now)}."
        case MessageKind.CANCELLED:
            return "the idle warning is void, the workload stays."
        case MessageKind.PAUSED:
            return f"was paused, {gpus} given back."
        case MessageKind.RESTORED:
            return "was restored to its former size."


def _when(deadline: Timestamp | None, now: Timestamp) -> str:
    if deadline is None:
        return "at a time that is not set yet"
    left = deadline - now
    relative = f"in {duration(left)}" if left > 0 else "now"
    return f"at {rfc3339(deadline)} ({relative})"


def _ways(decision: Decision, kind: MessageKind, *, now: Timestamp) -> tuple[str, ...]:
    """Return what one can do about it, the most useful first."""
    root, book = decision.workload.root, decision.book
    match kind:
        case MessageKind.WARNING | MessageKind.REMINDER:
            until = (now if book.pause_at is None else book.pause_at) + KEEP_FOR
            name = book.object_name or name_for(root)
            keep = keep_command(namespace=root.namespace, object_name=name, until=until)
            return (
                f"To keep it for now: {keep}",
                f"For good: {exempt_command(root, object_name=name)}",
                "Using a GPU again is enough, too.",
            )
        case MessageKind.PAUSED:
            command = resume_command(root, pause=book.pause)
            return (
                f"To bring it back: gpu-pruner resume {root.ref}",
                f"Or without us: {command}",
            )
        case MessageKind.CANCELLED | MessageKind.RESTORED:
            return ()


def _text(news: str, evidence: str, ways: tuple[str, ...]) -> str:
    """Join the parts; the last ways go first where there is no room, the first never."""
    for kept in range(len(ways), 0, -1):
        fixed = " ".join((news, *ways[:kept]))
        room = MOST_BYTES - len(fixed.encode("utf-8", "replace")) - 1
        if room >= LEAST_EVIDENCE_BYTES:
            return " ".join(part for part in (news, cut(evidence, room), *ways[:kept]) if part)
    return cut(" ".join((news, *ways[:1], evidence)), MOST_BYTES)
