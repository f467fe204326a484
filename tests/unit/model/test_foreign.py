"""Foreign words are safe to show; foreign clocks are accused only of what they can be proven."""

from __future__ import annotations

import pytest

from gpu_pruner.model.foreign import LONGEST_QUOTE, NOTHING_SENT, quoted, skew

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
        "bad token: Bearer s3cret",
        '{"token":"s3cret"}',
        r"{\"token\": \"s3cret\"}",
        "{'Authorization': 'Basic s3cret'}",
        "Authorization: token s3cret",
        'bearer: "s3cret"',
        "password=s3cret",
        "user:s3cret@prometheus",
    ],
)
def test_a_quote_holds_no_secret(text: str) -> None:
    assert "s3cret" not in quoted(text)


@pytest.mark.parametrize(
    "header", ["Bearer s3cret", "Basic bWU6czNjcmV0", "s3cret", "ApiKey s3cret", "bearer  s3cret "]
)
@pytest.mark.parametrize(
    "text", ["is s3cret known?", "s3crets3cret", "a" * 200 + "s3cret", "a" * 4091 + "s3cret"]
)
def test_a_quote_holds_nothing_that_we_sent(header: str, text: str) -> None:
    sent = NOTHING_SENT.also(header)
    assert "s3cret" not in quoted(text, sent=sent)
    assert "s3cret" not in repr(sent)


def test_what_was_sent_is_hidden_in_every_writing() -> None:
    sent = NOTHING_SENT.also('Bearer a"b&c/d')
    said = quoted('a\\"b&c/d, a&quot;b&amp;c/d, a%22b%26c%2Fd, over', sent=sent)
    assert said == "…, …, …, over"


def test_a_secret_that_somebody_cut_off_is_hidden_too() -> None:
    sent = NOTHING_SENT.also("Bearer s3cret-token")
    assert quoted("you sent s3cret-to", sent=sent) == "you sent …"


def test_the_newest_sixteen_credentials_are_remembered() -> None:
    sent = NOTHING_SENT.also(*(f"Bearer token-{number:03}" for number in range(30)))
    assert quoted("token-029 token-014 token-013", sent=sent) == "… … token-013"
    assert sent.also("Bearer token-029") is sent
