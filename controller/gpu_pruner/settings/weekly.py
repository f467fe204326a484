"""A moment of the week, as people write it: ``Fri 17:00 America/New_York``.

Answers which such moment came last. Reads no clock. Where clocks are set forward over the moment,
it is as much later as they are; where they are set back over it, the first of the two counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from gpu_pruner.model.units import Timestamp

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SHORT = 3
"""Letters of a day that are enough."""
_WRITTEN = re.compile(r"([A-Za-z]+) +([0-9]{1,2}):([0-9]{2}) +([A-Za-z0-9_+/-]+)")
_HINT = "write a day, a time and an IANA time zone, for example Fri 17:00 America/New_York"


@dataclass(frozen=True, slots=True)
class WeeklyMoment:
    """A day of the week, a time of the day, and where."""

    weekday: int
    """0 is Monday."""
    hour: int
    minute: int
    zone: str
    """IANA name."""

    def last(self, now: Timestamp) -> Timestamp:
        """Return the newest such moment that is not after `now`, Unix seconds."""
        zone = ZoneInfo(self.zone)
        today = datetime.fromtimestamp(now, zone).date()
        day = today - timedelta(days=(today.weekday() - self.weekday) % 7)
        moment = self._on(day, zone)
        return moment if moment <= now else self._on(day - timedelta(days=7), zone)

    def _on(self, day: date, zone: ZoneInfo) -> Timestamp:
        return datetime.combine(day, time(self.hour, self.minute), tzinfo=zone).timestamp()


def parse_weekly(text: str) -> WeeklyMoment:
    """Read such a moment.

    Raises:
        ValueError: it is none; with what is wrong, as pydantic wants it.

    >>> parse_weekly("Fri 17:00 America/New_York")
    WeeklyMoment(weekday=4, hour=17, minute=0, zone='America/New_York')
    """
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"is no moment of the week; {_HINT}")
    word = found[1].lower()
    days = [n for n, day in enumerate(_DAYS) if len(word) >= _SHORT and day.startswith(word)]
    if not days:
        raise ValueError(f"{found[1]!r} is no day of the week; {_HINT}")
    hour, minute = int(found[2]), int(found[3])
    if hour > 23 or minute > 59:  # noqa: PLR2004 - of a clock
        raise ValueError(f"{found[2]}:{found[3]} is no time of the day; {_HINT}")
    try:
        ZoneInfo(found[4])
    except (KeyError, ValueError, OSError) as error:  # a folder of zones is an OSError
        raise ValueError(f"{found[4]!r} is no time zone that is known here; {_HINT}") from error
    return WeeklyMoment(days[0], hour, minute, found[4])
