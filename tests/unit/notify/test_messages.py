from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some
from support.decisions import NOTEBOOK, SERVER, a_decision
from support.manual_clock import NOON

from gpu_pruner.model.book import Book, PauseRecord, Phase
from gpu_pruner.model.orders import MessageKind, Severity
from gpu_pruner.model.plan import Decision
from gpu_pruner.model.rules import Mode
from gpu_pruner.notify.messages import EVENT_REASONS, MOST_BYTES, Message, duration, message_for

HAPPENED = {MessageKind.PAUSED, MessageKind.RESTORED}
WARNED = Book(
    phase=Phase.WARNED,
    warned_at=NOON,
    pause_at=NOON + 900,
    nominated_at=NOON - 60,
    object_name="deployment-server-uidd",
)
PAUSED = Book(
    phase=Phase.PAUSED,
    gpus=4,
    pause=PauseRecord(
        lever="Deployment", replicas=3, uid="uid-d", generation=7, at=NOON, decision="d", why=""
    ),
)


def told(
    kind: MessageKind,
    decision: Decision | None = None,
    *,
    mode: Mode = Mode.SCALE_DOWN,
    now: float = NOON,
) -> Message:
    return message_for(decision or a_decision(book=WARNED), kind, mode=mode, now=now)


def test_a_warning_says_what_when_why_and_how_to_keep_it() -> None:
    text = told(MessageKind.WARNING).text
    assert text == (
        "Idle on 4 GPUs, will be paused at 2026-01-31T12:15:00Z (in 15 minutes). "
        "No GPU work on 4 of 4 GPUs since 11:02. "
        "To keep it for now: kubectl patch gpw deployment-server-uidd -n team-a --type merge "
        '-p \'{"spec":{"keepUntil":"2026-01-31T16:15:00Z"}}\' '
        "For good: kubectl annotate deployment server -n team-a gpu-pruner.io/exempt=true "
        "--overwrite Using a GPU again is enough, too."
    )


def test_the_title_names_the_workload() -> None:
    assert told(MessageKind.WARNING).title == (
        "Deployment team-a/server: idle on 4 GPUs, will be paused at 2026-01-31T12:15:00Z "
        "(in 15 minutes)."
    )


def test_a_pause_says_how_to_bring_it_back_with_and_without_us() -> None:
    text = told(MessageKind.PAUSED, a_decision(book=PAUSED, pods=())).text
    assert text.startswith("Was paused, 4 GPUs given back.")
    assert "gpu-pruner resume deployment/team-a/server" in text
    assert "kubectl scale deployment server -n team-a --replicas=3" in text


def test_a_notebook_is_brought_back_by_its_own_annotation() -> None:
    text = told(MessageKind.PAUSED, a_decision(NOTEBOOK, book=PAUSED, pods=())).text
    assert (
        "kubectl annotate notebook.kubeflow.org notebook-1 -n team-b kubeflow-resource-stopped-"
        in text
    )


@pytest.mark.parametrize("kind", sorted(set(MessageKind) - HAPPENED))
def test_a_rehearsal_is_called_one_and_claims_nothing(kind: MessageKind) -> None:
    message = told(kind, a_decision(book=replace(PAUSED, pause_at=NOON)), mode=Mode.DRY_RUN)
    assert message.text.startswith("Rehearsal: ")
    assert message.title.startswith("Rehearsal: ")
    assert not re.search(r"\b(will be|was) (paused|restored)", message.text)
    real = told(kind, a_decision(book=PAUSED))
    assert "Rehearsal" not in real.text


@pytest.mark.parametrize("kind", sorted(HAPPENED))
def test_what_a_person_did_during_a_dry_run_is_told_as_it_was(kind: MessageKind) -> None:
    decision = a_decision(book=PAUSED, pods=())
    rehearsed = told(kind, decision, mode=Mode.DRY_RUN)
    assert rehearsed == told(kind, decision)
    assert rehearsed.text.startswith("Was ")


@pytest.mark.parametrize("kind", MessageKind)
def test_an_event_reason_is_one_short_camel_case_word(kind: MessageKind) -> None:
    assert re.fullmatch(r"([A-Z][a-z]+)+", EVENT_REASONS[kind])
    assert len(EVENT_REASONS[kind]) <= 128
    assert told(kind).reason == EVENT_REASONS[kind]


def test_only_what_somebody_should_act_on_is_urgent() -> None:
    urgent = {kind for kind in MessageKind if told(kind).severity is Severity.WARNING}
    assert urgent == {MessageKind.WARNING, MessageKind.REMINDER}


def test_a_deadline_that_has_passed_is_now_and_never_negative() -> None:
    assert "(now)" in told(MessageKind.REMINDER, now=NOON + 1000).text


def test_a_missing_deadline_is_said_to_be_missing() -> None:
    text = told(MessageKind.WARNING, a_decision(book=Book(object_name="g"))).text
    assert "at a time that is not set yet" in text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "less than a minute"),
        (29, "less than a minute"),
        (30, "1 minute"),
        (60, "1 minute"),
        (889, "15 minutes"),
        (3600, "1 hour"),
        (3900, "1 hour 5 minutes"),
        (86_400, "24 hours"),
        (-5, "less than a minute"),
    ],
)
def test_lengths_of_time_are_said_in_whole_minutes(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@given(
    message=some.text(max_size=3000),
    name=some.text(min_size=1, max_size=253),
    kind=some.sampled_from(MessageKind),
    mode=some.sampled_from(Mode),
)
def test_whatever_people_wrote_a_message_fits_and_is_one_plain_line(
    message: str, name: str, kind: MessageKind, mode: Mode
) -> None:
    root = replace(SERVER, name=name)
    sent = told(kind, a_decision(root, book=WARNED, message=message), mode=mode)
    assert len(sent.text.encode()) <= MOST_BYTES
    assert len(sent.title.encode()) <= 200
    assert all(one.isprintable() for one in sent.title)


def test_a_long_reason_is_cut_and_the_way_to_keep_it_never() -> None:
    decision = a_decision(book=WARNED, message="idle " * 1000)
    text = told(MessageKind.WARNING, decision).text
    assert "idle…" in text
    assert '"keepUntil":"2026-01-31T16:15:00Z"' in text
    assert "gpu-pruner.io/exempt=true" in text


def test_with_the_longest_names_the_first_way_to_keep_it_is_whole() -> None:
    root = replace(SERVER, name="a" * 253, namespace="b" * 63)
    book = replace(WARNED, object_name="c" * 253)
    text = told(MessageKind.WARNING, a_decision(root, book=book, message="idle " * 1000)).text
    assert '"keepUntil":"2026-01-31T16:15:00Z"' in text
    assert len(text.encode()) <= MOST_BYTES


def test_markup_in_foreign_words_is_inert() -> None:
    hostile = "<!channel> <https://example.org|click> `rm` \x1b[31m \u202eevil\u2066 a\nb"
    text = told(MessageKind.WARNING, a_decision(book=WARNED, message=hostile)).text
    for mark in ("<", ">", "`", "\x1b", "\u202e", "\u2066", "\n"):
        assert mark not in text
    assert "(!channel)" in text
