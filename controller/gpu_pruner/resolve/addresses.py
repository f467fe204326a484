"""Addresses of people, read out of text that anybody may have written.

It answers which people a text names. What it returns is safe: it never addresses everybody in a
channel, holds no markup and no control characters, and is bounded in length and number. What is
not read as an address is returned as such, so that somebody can be told. It never raises.

The forms are those that people and the Rust tool write: ``alice@example.com``,
``Alice <alice@example.com>``, ``<@U0123ABCD>``, ``<!subteam^S0123ABCD>``, ``@alice``, ``alice``.
Several are separated by commas, semicolons or line ends; mentions also by spaces.
Source of the Slack forms: docs.slack.dev, "Formatting message text".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from gpu_pruner.model.audience import Address, AddressKind

MOST_PEOPLE = 5
"""People that one text, and one audience, may name: more is a mailing list, not an owner."""
LONGEST_TEXT = 1000
"""Characters of a text that is read at all: five of the longest usual addresses fit."""
_LONGEST_EMAIL = 254
_LONGEST_NAME = 64

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_EMAIL = rf"[A-Za-z0-9_][A-Za-z0-9_.%+-]{{0,63}}@(?:{_LABEL}\.)+[A-Za-z]{{2,63}}"
_FORMS: tuple[tuple[AddressKind, re.Pattern[str]], ...] = (
    (AddressKind.EMAIL, re.compile(f"({_EMAIL})")),
    (AddressKind.EMAIL, re.compile(f"[^<>@!#&|]{{0,80}}<({_EMAIL})>")),
    (AddressKind.SLACK_USER, re.compile(r"<@([UW][A-Z0-9]{1,20})(?:\|[^<>|]{0,80})?>")),
    (AddressKind.SLACK_GROUP, re.compile(r"<!subteam\^(S[A-Z0-9]{1,20})(?:\|[^<>|]{0,80})?>")),
    (AddressKind.SLACK_USER, re.compile(r"@?((?=[A-Z]*[0-9])[UW][A-Z0-9]{8,20})")),
    (AddressKind.SLACK_GROUP, re.compile(r"@?((?=[A-Z]*[0-9])S[A-Z0-9]{8,20})")),
)
"""The first form that is all of a piece counts; an id without marks is long and has a digit."""
_NAME = re.compile(r"@?(\w(?:[\w.+:@ -]{0,62}\w)?)")
_CHANNEL = re.compile(r"#([\w-]{1,80})|<#([CG][A-Z0-9]{1,20})(?:\|[^<>|]{0,80})?>")
_EVERYBODY = re.compile(r"(?:^|@)(?:here|channel|everyone|all)(?!\w)")
_NO_PERSON = "system:"
"""Begins the names of service accounts and of parts of the cluster."""
_ENDS = re.compile(r"[,;\r\n]+")
_BETWEEN_MENTIONS = re.compile(r">\s*(?=<[@!#])")


@dataclass(frozen=True, slots=True)
class Addresses:
    """What a text names."""

    people: tuple[Address, ...] = ()
    """In the order of the text, each once, at most `MOST_PEOPLE`."""
    channels: tuple[str, ...] = ()
    """Channels that it names. Whoever reads a text of a user must not write to them."""
    unread: tuple[str, ...] = ()
    """Pieces that name nobody, as written: hostile text."""
    left_out: int = 0
    """People beyond `MOST_PEOPLE`."""


def addresses(text: str) -> Addresses:
    """Read who is named in a text.

    Args:
        text: as somebody wrote it. One that is longer than `LONGEST_TEXT` is not read at all, since
            half an address is another one.
    """
    if len(text) > LONGEST_TEXT:
        return Addresses(unread=(text,))
    people: dict[Address, None] = {}
    channels: dict[str, None] = {}
    unread: list[str] = []
    for piece in _pieces(text):
        person, channel = address(piece), _channel(piece)
        if person is not None:
            people[person] = None
        elif channel:
            channels[channel] = None
        else:
            unread.append(piece)
    kept = tuple(people)[:MOST_PEOPLE]
    return Addresses(kept, tuple(channels), tuple(unread), len(people) - len(kept))


def address(piece: str) -> Address | None:
    """Return the one person or group that a piece of text is; None where it is neither."""
    for kind, form in _FORMS:
        found = form.fullmatch(piece)
        if found is not None and len(found[1]) <= _LONGEST_EMAIL:
            return Address(kind, found[1])
    return _name(piece)


def _name(piece: str) -> Address | None:
    found = _NAME.fullmatch(piece)
    if found is None or len(found[1]) > _LONGEST_NAME:
        return None
    name = found[1]
    plain = unicodedata.normalize("NFKC", name).casefold()
    if not plain.isprintable() or plain.startswith(_NO_PERSON) or _EVERYBODY.search(plain):
        return None
    return Address(AddressKind.NAME, name)


def _channel(piece: str) -> str:
    found = _CHANNEL.fullmatch(piece)
    if found is None:
        return ""
    return found[2] or f"#{found[1]}"


def _pieces(text: str) -> Iterator[str]:
    """Yield what stands between the separators; a name may hold spaces, mentions may not."""
    for part in _ENDS.split(_BETWEEN_MENTIONS.sub(">\n", text)):
        piece = part.strip()
        words = piece.split()
        if len(words) > 1 and all(map(_stands_alone, words)):
            yield from words
        elif piece:
            yield piece


def _stands_alone(word: str) -> bool:
    """Return whether a word is an address by its form, and no part of somebody's name."""
    marked = word.startswith(("<", "@", "#"))
    return marked or any(form.fullmatch(word) for _, form in _FORMS)
