"""Units that types alone do not carry."""

from __future__ import annotations

from datetime import MAXYEAR, MINYEAR, UTC, datetime
from typing import TypeAlias

Timestamp: TypeAlias = float
"""Unix seconds, UTC."""

Seconds: TypeAlias = float
"""A length of time in seconds."""

MINUTE: Seconds = 60.0
HOUR: Seconds = 3600.0
DAY: Seconds = 24 * HOUR


def rfc3339(moment: Timestamp) -> str:
    """Write a moment as the API server writes times, to the second.

    Args:
        moment: Unix seconds, UTC.

    Returns:
        For example ``2026-01-31T14:02:00Z``.
    """
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_rfc3339(text: str) -> Timestamp:
    """Read a time that carries its own offset.

    Args:
        text: RFC 3339 with ``Z`` or a numeric offset. A time without one is refused,
            because guessing the zone moves somebody's deadline.

    Returns:
        Unix seconds, UTC.

    Raises:
        ValueError: the text is not such a time.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        message = f"{text[:40]!r} is not a time"
        raise ValueError(message) from error
    if moment.tzinfo is None:
        message = f"{text[:40]!r} names no time zone; write it with Z or an offset"
        raise ValueError(message)
    if not MINYEAR < moment.year < MAXYEAR:
        message = f"{text[:40]!r} is at the calendar's end, where it could not be written again"
        raise ValueError(message)
    return moment.timestamp()
