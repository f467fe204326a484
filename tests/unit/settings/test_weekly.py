from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gpu_pruner.settings.weekly import WeeklyMoment, parse_weekly

NEW_YORK = "America/New_York"


def utc(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("written", "now", "last"),
    [
        # Friday at 17:00 in New York is 21:00 UTC in summer and 22:00 UTC in winter.
        (f"Fri 17:00 {NEW_YORK}", "2026-07-10T21:00:00", "2026-07-10T21:00:00"),
        (f"Fri 17:00 {NEW_YORK}", "2026-07-10T20:59:59", "2026-07-03T21:00:00"),
        (f"Fri 17:00 {NEW_YORK}", "2026-12-04T22:00:00", "2026-12-04T22:00:00"),
        (f"Fri 17:00 {NEW_YORK}", "2026-12-04T21:59:59", "2026-11-27T22:00:00"),
        # Between them, the clocks were set: a week of 169 hours, and one of 167.
        (f"Fri 17:00 {NEW_YORK}", "2026-11-06T22:00:00", "2026-11-06T22:00:00"),
        (f"Fri 17:00 {NEW_YORK}", "2026-11-06T21:59:59", "2026-10-30T21:00:00"),
        (f"Fri 17:00 {NEW_YORK}", "2026-03-13T20:59:59", "2026-03-06T22:00:00"),
        # 02:30 does not exist on this Sunday: it is 03:30.
        (f"Sunday 2:30 {NEW_YORK}", "2026-03-08T07:29:59", "2026-03-01T07:30:00"),
        (f"Sunday 2:30 {NEW_YORK}", "2026-03-08T07:30:00", "2026-03-08T07:30:00"),
        # 01:30 comes twice on this one: the first counts, and the second is no other moment.
        (f"Sunday 1:30 {NEW_YORK}", "2026-11-01T05:30:00", "2026-11-01T05:30:00"),
        (f"Sunday 1:30 {NEW_YORK}", "2026-11-01T06:30:00", "2026-11-01T05:30:00"),
        # What is Monday there is still Sunday in UTC.
        ("mon 00:05 Asia/Tokyo", "2026-07-05T15:05:00", "2026-07-05T15:05:00"),
        ("Thurs 9:00 UTC", "2026-07-08T00:00:00", "2026-07-02T09:00:00"),
    ],
)
def test_the_last_moment_is_as_clocks_on_the_wall_show_it(
    written: str, now: str, last: str
) -> None:
    assert parse_weekly(written).last(utc(now)) == utc(last)


def test_every_minute_of_two_years_has_a_moment_a_week_back_at_most() -> None:
    moment = WeeklyMoment(6, 2, 30, NEW_YORK)
    begin = utc("2026-01-01T00:00:00")
    found = [moment.last(begin + 1800 * half_hour) for half_hour in range(2 * 24 * 731)]
    assert found == sorted(found)
    assert len(set(found)) == 105
    assert max(begin + 1800 * n - one for n, one in enumerate(found)) <= (7 * 24 + 1) * 3600


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("", "is no moment of the week"),
        ("Fri 17:00", "is no moment of the week"),
        ("Fri 17:00 America/New_York now", "is no moment of the week"),
        ("Fr 17:00 UTC", "'Fr' is no day of the week"),
        ("Freitag 17:00 UTC", "'Freitag' is no day of the week"),
        ("Fri 24:00 UTC", "24:00 is no time of the day"),
        ("Fri 17:60 UTC", "17:60 is no time of the day"),
        ("Fri 17:00 Mars/Olympus", "'Mars/Olympus' is no time zone"),
        ("Fri 17:00 America", "'America' is no time zone"),
        ("Fri 17:00 /etc/passwd", "'/etc/passwd' is no time zone"),
    ],
)
def test_what_is_no_such_moment_is_refused(written: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_weekly(written)
