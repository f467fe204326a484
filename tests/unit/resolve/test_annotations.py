from __future__ import annotations

import pytest

from gpu_pruner.model.annotations import ACK_BY, ACK_UNTIL, EXEMPT, HOLD
from gpu_pruner.model.units import parse_rfc3339
from gpu_pruner.model.verdict import Reason
from gpu_pruner.resolve.annotations import (
    AnnotatedKeep,
    Source,
    annotated_keep,
    exemptions,
    holds,
    shown,
)

NOW = parse_rfc3339("2026-01-01T12:00:00Z")


def on(**annotations: str) -> Source:
    keys = {"exempt": EXEMPT, "hold": HOLD, "ack_until": ACK_UNTIL, "ack_by": ACK_BY}
    return Source("Deployment serve", {}, {keys[name]: text for name, text in annotations.items()})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("true", Reason.EXEMPT),
        (" True\n", Reason.EXEMPT),
        ("false", None),
        ("FALSE", None),
        ("2026-01-01T12:00:01Z", Reason.EXEMPT),
        ("2026-01-01T12:00:00Z", None),
        ("2026-01-01T13:30:00+02:00", None),
        ("2026-01-01T13:00:00", Reason.MALFORMED_EXEMPTION),
        ("", Reason.MALFORMED_EXEMPTION),
        ("no", Reason.MALFORMED_EXEMPTION),
        ("0", Reason.MALFORMED_EXEMPTION),
        ("\x00", Reason.MALFORMED_EXEMPTION),
        ("0001-01-01T00:00:00+23:59", Reason.MALFORMED_EXEMPTION),
    ],
)
def test_an_exemption_is_true_false_a_time_or_malformed(text: str, reason: Reason | None) -> None:
    found = exemptions([on(exempt=text)], now=NOW)
    assert [one.reason for one in found] == ([reason] if reason else [])


def test_a_label_counts_like_an_annotation() -> None:
    source = Source("pod p-0", {EXEMPT: "true"}, {EXEMPT: "false"})
    assert [one.reason for one in exemptions([source], now=NOW)] == [Reason.EXEMPT]


def test_an_exemption_tells_its_source_and_its_end() -> None:
    (found,) = exemptions([on(exempt="2026-01-01T13:00:00Z")], now=NOW)
    assert found.until == NOW + 3600
    assert found.detail == f"{EXEMPT}=2026-01-01T13:00:00Z on Deployment serve"


@pytest.mark.parametrize("text", ["true", "", "maybe", "2020-01-01T00:00:00Z"])
def test_everything_but_false_holds(text: str) -> None:
    assert [one.reason for one in holds([on(hold=text)])] == [Reason.HELD]
    assert holds([on(hold=" False ")]) == ()


def test_the_rust_tools_keep_is_read() -> None:
    source = on(ack_until="2026-01-01T14:00:00+01:00", ack_by="sam")
    assert annotated_keep(source) == AnnotatedKeep(NOW + 3600, "sam")
    assert annotated_keep(on()) is None


@pytest.mark.parametrize("text", ["2026-01-01T14:00:00", "soon", "", "9" * 5000])
def test_a_keep_that_cannot_be_read_protects(text: str) -> None:
    found = annotated_keep(on(ack_until=text))
    assert not isinstance(found, AnnotatedKeep | None)
    assert found.reason is Reason.MALFORMED_EXEMPTION
    assert len(found.detail) < 150


def test_somebodys_text_is_shown_short_and_on_one_line() -> None:
    assert shown("fine") == "fine"
    assert shown("a\nb\x1b[31m\u202e") == "a\ufffdb\ufffd[31m\ufffd"
    assert shown("x" * 100) == "x" * 40 + "…"
