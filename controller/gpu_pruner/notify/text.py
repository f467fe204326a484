"""Foreign words made harmless, and text cut to a limit.

Answers: how may a name or a sentence that somebody else wrote stand in our message. Names come from
people and may hold control characters, mark-up or text that reads backwards; in a message they are
words and nothing else. Pure; called by `notify.messages`.
"""

from __future__ import annotations

import unicodedata

ELLIPSIS = "…"
"""Ends every text that was cut."""

_SHORTEST_SHARE = 0.6
"""A cut goes back to the last space only if so much of the room stays used."""

_INERT = str.maketrans({"<": "(", ">": ")", "`": "'", "&": "+"})
"""Characters that chat programs and Markdown take for mark-up, and harmless stand-ins."""


def inert(text: str) -> str:
    """Return foreign text as one line of plain words.

    Control and format characters (line ends, terminal escapes, text direction) become spaces,
    mark-up characters their harmless stand-ins, and runs of spaces one space.
    """
    plain = (" " if unicodedata.category(one)[0] in "CZ" else one for one in text)
    return " ".join("".join(plain).translate(_INERT).split())


def cut(text: str, most_bytes: int) -> str:
    """Return the text, cut at a word where it is longer than a limit in UTF-8.

    Never splits a character, nor a letter from the accents that belong to it.

    Args:
        text: one line.
        most_bytes: longest length in bytes; the API server counts bytes too.
    """
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= most_bytes:
        return encoded.decode()
    room = most_bytes - len(ELLIPSIS.encode())
    if room <= 0:
        return ""
    kept = encoded[:room].decode("utf-8", "ignore")
    following = encoded.decode()[len(kept)]
    if unicodedata.combining(following):
        kept = kept.rstrip("".join(one for one in kept if unicodedata.combining(one)))[:-1]
    space = kept.rfind(" ")
    if not following.isspace() and space > len(kept) * _SHORTEST_SHARE:
        kept = kept[:space]
    return kept.rstrip(" ,;:(") + ELLIPSIS
