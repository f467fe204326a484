"""What other machines say about themselves, made fit for us: their words and their clocks.

Both HTTP clients (`kube`, `observe`) read foreign texts and dates; this is the one place where
these are made safe to show and to compare.
"""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime

from gpu_pruner.model.units import Seconds, Timestamp

LONGEST_QUOTE = 256
"""Characters of a foreign text that a message may carry."""

_SECRETS = re.compile(r"(?i)(bearer|basic)\s+\S+|(?<=//)[^/\s@]+@|token[=:]\s*\S+")


def quoted(text: str) -> str:
    """Return a foreign text fit for a message: one printable line, short, without secrets.

    Args:
        text: anything, for example the body of an error page that repeats our request.

    Returns:
        At most `LONGEST_QUOTE` characters.
    """
    line = " ".join(_SECRETS.sub("…", text).split())
    printable = "".join(letter if letter.isprintable() else "?" for letter in line)
    if len(printable) <= LONGEST_QUOTE:
        return printable
    return printable[: LONGEST_QUOTE - 1] + "…"


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
