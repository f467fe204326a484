"""What other machines say about themselves, made fit for us: their words and their clocks.

All HTTP clients (`kube`, `observe`, `jupyterhub`) read foreign texts, and two of them dates; this
is the one place where these are made safe to show and to compare.
"""

from __future__ import annotations

import binascii
import html
import json
import re
from base64 import b64decode
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import quote

from gpu_pruner.model.units import Seconds, Timestamp

LONGEST_QUOTE = 256
"""Characters of a foreign text that a message may carry."""

_CONSIDERED = 4096
"""Characters of a foreign text that are looked at; what follows is never shown."""
_SHORTEST_SECRET = 4
"""Characters; what is shorter stands in half of all words, and hiding it would only tell it."""
_KEPT_SECRETS = 16
"""Credentials of one client that are remembered, the newest: a watch opened with a token may be
answered when that has been renewed, which is once per hour at the most."""

_SECRETS = re.compile(
    r"""
      (?: token | passw(?:or)?d | authorization | api[-_]?key ) ["'\\]* \s* [:=] [\s"'\\]*
          (?: (?: bearer | basic | token | digest | negotiate ) [\s:="'\\]+ )* \S+
    | (?: bearer | basic ) [\s:="'\\]+ \S+
    | (?<=//) [^/\s@]+ @
    | [^/\s@:]{0,128} : [^/\s@]{1,1024} @
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""What looks like a credential, whoever it belongs to."""

_MASK = "…"


@dataclass(frozen=True, slots=True)
class Sent:
    """The credentials that a client has sent: what no message may repeat, whoever repeats it."""

    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Tell how many there are."""
        return f"Sent({len(self.secrets)} secrets)"

    def also(self, *headers: str) -> Sent:
        """Return these and what more headers carry.

        Args:
            headers: values such as ``Bearer TOKEN`` or ``Basic BASE64``, or any other secret.
        """
        found = [secret for header in headers for secret in _carried(header)]
        if all(secret in self.secrets for secret in found):
            return self
        kept = dict.fromkeys((*(one for one in self.secrets if one not in found), *found))
        return Sent(tuple(kept)[-_KEPT_SECRETS:])

    def hidden_in(self, line: str) -> str:
        """Return a text with a mask for each of them, however it is written."""
        forms = {form for secret in self.secrets for form in _written(secret)}
        for form in sorted(forms, key=len, reverse=True):
            line = line.replace(form, _MASK)
        return _without_begun(line, forms)


NOTHING_SENT = Sent()


def _carried(header: str) -> list[str]:
    """Return the secrets in the value of a header."""
    scheme, _, rest = header.strip().partition(" ")
    found = [rest or scheme]
    if scheme.lower() not in {"bearer", "basic"}:
        found.append(header)
    elif scheme.lower() == "basic":
        try:
            login = b64decode(rest).decode("utf-8", "replace")
        except (binascii.Error, ValueError):  # it is no login; then it is the secret itself
            login = ""
        found += [login, login.partition(":")[2]]
    return [one.strip() for one in found if len(one.strip()) >= _SHORTEST_SECRET]


def _written(secret: str) -> tuple[str, ...]:
    """Return how a secret may stand in a line: plain, or as JSON, HTML or a part of a URL."""
    forms = secret, json.dumps(secret)[1:-1], html.escape(secret), quote(secret, safe="")
    return tuple(_line(form) for form in forms)


def _without_begun(line: str, forms: set[str]) -> str:
    """Return a text without the first part of a secret at its end, where somebody cut it off."""
    begun = (
        size
        for form in forms
        for size in range(len(form) - 1, _SHORTEST_SECRET - 1, -1)
        if line.endswith(form[:size])
    )
    longest = max(begun, default=0)
    return line[:-longest] + _MASK if longest else line


def _line(text: str) -> str:
    """Return a text as one printable line."""
    line = " ".join(text.split())
    return "".join(letter if letter.isprintable() else "?" for letter in line)


def quoted(text: str, *, sent: Sent = NOTHING_SENT) -> str:
    """Return a foreign text fit for a message: one printable line, short, without secrets.

    Args:
        text: anything, for example the body of an error page that repeats our request.
        sent: what the client that got the text had sent.

    Returns:
        At most `LONGEST_QUOTE` characters.
    """
    # By value first: a pattern that took half of a secret would leave the other half.
    printable = _SECRETS.sub(_MASK, sent.hidden_in(_line(text[:_CONSIDERED])))
    if len(printable) <= LONGEST_QUOTE:
        return printable
    return printable[: LONGEST_QUOTE - 1] + _MASK


def skew(date: str, *, sent: Timestamp, received: Timestamp) -> Seconds | None:
    """Return another machine's clock minus ours, as far as one HTTP answer can prove it.

    Args:
        date: the ``Date`` header; it has whole seconds, cut off.
        sent: our time before the request, Unix seconds.
        received: our time when the answer was there.

    Returns:
        0 where the date lies within [sent - 1 s, received], else the signed distance in seconds;
        None where the header is absent or unreadable.
    """
    try:
        told = parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None
    return min(0.0, told - (sent - 1.0)) + max(0.0, told - received)
