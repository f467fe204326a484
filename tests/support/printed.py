"""Compares what a page shows with what a command printed, word by word.

How lines are wrapped is not compared. What differs from run to run is taken out of both sides
alike: times, spans since then, addresses of loopback, ids. Besides that, ``…`` as a word stands
for any words, and within one for the rest of it.
"""

from __future__ import annotations

import re

ELLIPSIS = "…"

_CHANGING = (
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?", "TIME"),
    (r"\b\d\d:\d\d(:\d\d)? UTC", "TIME"),
    (r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "GPU-ID"),
    (r"GPU-[0-9a-f]{8}\b", "GPU-ID"),
    (r"https?://(127\.0\.0\.1|localhost):\d+", "ADDRESS"),
    (r"[+-]\d+ s\b", "SKEW"),
    (r"\b\d+ s\b", "AGE"),
    (r"\b\d+(\.\d+)? W\b", "POWER"),
    (r"moved in \d+ steps", "moved in some steps"),
    (r"AGE +\d+ ", "AGE MOVED "),
)


def words(text: str) -> list[str]:
    """Return a text's words, without what changes from run to run."""
    for pattern, name in _CHANGING:
        text = re.sub(pattern, name, text)
    return text.split()


def is_shown(shown: str, printed: str) -> bool:
    """Return whether a page's text is what was printed.

    Args:
        shown: the page's, with its ellipses.
        printed: the program's.
    """
    pattern = "".join(
        r"(?:\S+ )*?"
        if word == ELLIPSIS
        else r"\S*".join(map(re.escape, word.split(ELLIPSIS))) + " "
        for word in words(shown)
    )
    return re.fullmatch(pattern, " ".join([*words(printed), ""])) is not None
