from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.settings.durations import LONGEST, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "unit", "seconds"),
    [
        ("35", "m", 2100.0),
        ("300", "s", 300.0),
        ("35m", "s", 2100.0),
        ("2h", "m", 7200.0),
        ("1h30m", "s", 5400.0),
        (" 90 ", "s", 90.0),
        ("1.5h", "s", 5400.0),
        (60, "s", 60.0),
    ],
)
def test_a_bare_number_is_in_the_flags_unit_and_a_unit_may_be_written(text, unit, seconds):
    assert parse_duration(text, bare_unit=unit) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "m",
        "35 minutes",
        "-5",
        "1h-30m",
        "99999999h",
        "nan",
        "inf",
        "1e400",
        "5m5",
        "\u0663\u0665m",
    ],
)
def test_anything_else_is_refused_with_a_sentence(text):
    with pytest.raises(ConfigurationError, match="length of time|between 0 and 366 days"):
        parse_duration(text)


@given(st.text(max_size=30))
def test_no_text_crashes_it(text):
    try:
        seconds = parse_duration(text)
    except ConfigurationError:
        return
    assert 0 <= seconds <= LONGEST


@given(st.integers(0, int(LONGEST)))
def test_what_it_writes_it_reads_back_to_the_second_largest_unit(seconds):
    written = format_duration(seconds)
    assert seconds - 86_400 < parse_duration(written) <= seconds
