from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as some

from gpu_pruner.notify.text import ELLIPSIS, cut, inert


def test_a_text_that_fits_stays_as_it_is() -> None:
    assert cut("all of it", 9) == "all of it"


def test_a_cut_falls_between_words() -> None:
    assert cut("the quick brown fox", 14) == "the quick…"


def test_a_single_long_word_is_cut_where_it_must() -> None:
    assert cut("x" * 50, 13) == "x" * 10 + ELLIPSIS


def test_a_letter_keeps_its_accents_or_goes_with_them() -> None:
    accented = "e\u0301\u0302" * 20
    for room in range(len(accented.encode())):
        kept = cut(accented, room).removesuffix(ELLIPSIS)
        assert len(kept) % 3 == 0


@given(some.text(max_size=300), some.integers(0, 300))
def test_a_cut_never_exceeds_its_limit_nor_splits_a_character(text: str, most: int) -> None:
    short = cut(inert(text), most)
    assert len(short.encode()) <= most
    assert "\N{REPLACEMENT CHARACTER}" not in short or "\N{REPLACEMENT CHARACTER}" in text


@given(some.text(max_size=300))
def test_inert_text_is_one_line_of_plain_words(text: str) -> None:
    plain = inert(text)
    assert not any(unicodedata.category(one).startswith("C") for one in plain)
    assert not set("<>`&\n\r\t") & set(plain)
    assert inert(plain) == plain
