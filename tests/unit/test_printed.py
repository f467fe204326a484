"""What the comparison of pages with output lets pass, and what it does not."""

from __future__ import annotations

import pytest
from support.printed import is_shown

PRINTED = "train  idle  Confirming: 4 of 4 GPUs since 16:03 UTC\nserve  unknown  of pod serve-76d5"


@pytest.mark.parametrize(
    "shown",
    [
        PRINTED,
        "train idle Confirming: 4 of 4\n   GPUs since 09:59 UTC\nserve unknown of pod serve-76d5",
        "…\nserve  unknown  of pod serve-…",
        "train  idle  …",
    ],
)
def test_a_text_is_shown_whatever_its_times_and_its_wrapping(shown: str) -> None:
    assert is_shown(shown, PRINTED)


@pytest.mark.parametrize(
    "shown",
    [
        "",
        PRINTED.replace("4 of 4", "3 of 4"),
        PRINTED.replace("unknown", "idle"),
        PRINTED.partition("\n")[0],
        "…\nserve  unknown  of pod",
        "…\nserve  unknown  of pod train-…",
        f"{PRINTED} and more",
    ],
)
def test_another_word_a_missing_one_and_one_too_many_are_told(shown: str) -> None:
    assert not is_shown(shown, PRINTED)
