"""Foreign words are safe to show; foreign clocks are accused only of what they can be proven."""

from __future__ import annotations

import pytest

from gpu_pruner.model.foreign import LONGEST_QUOTE, quoted, skew

NOON = 1_769_860_800.0
DATE = "Sat, 31 Jan 2026 12:00:00 GMT"


@pytest.mark.parametrize(
    ("sent", "received", "expected"),
    [
        (NOON, NOON + 0.2, 0.0),
        (NOON + 0.9, NOON + 1.1, 0.0),
        (NOON - 5, NOON + 5, 0.0),
        (NOON + 41, NOON + 41.5, -40.0),
        (NOON - 31, NOON - 30, 30.0),
    ],
)
def test_skew_is_zero_where_the_date_fits_and_signed_elsewhere(
    sent: float, received: float, expected: float
) -> None:
    assert skew(DATE, sent=sent, received=received) == pytest.approx(expected)


@pytest.mark.parametrize("date", ["", "yesterday", "Sat, 99 Jan 2026 12:00:00 GMT"])
def test_an_unreadable_date_says_nothing(date: str) -> None:
    assert skew(date, sent=NOON, received=NOON) is None


def test_a_quote_is_one_short_printable_line() -> None:
    text = quoted("a\n  b\x1b[31m" + "c" * 1000)
    assert text.startswith("a b?[31mccc")
    assert len(text) == LONGEST_QUOTE


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer s3cret",
        "http://user:s3cret@prometheus/",
        "token=s3cret",
        "basic s3cret",
    ],
)
def test_a_quote_holds_no_secret(text: str) -> None:
    assert "s3cret" not in quoted(text)
