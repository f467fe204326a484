from __future__ import annotations

import pytest

from gpu_pruner.model.units import parse_rfc3339, rfc3339


def test_a_moment_is_written_as_the_api_server_writes_it() -> None:
    assert rfc3339(1_767_268_800.9) == "2026-01-01T12:00:00Z"


def test_a_time_is_read_with_its_own_offset() -> None:
    assert parse_rfc3339("2026-01-01T12:00:00Z") == 1_767_268_800
    assert parse_rfc3339("2026-01-01T14:00:00+02:00") == 1_767_268_800


@pytest.mark.parametrize(
    "text", ["2026-01-01T12:00:00", "2026-01-01", "", "tomorrow", "1767268800"]
)
def test_a_time_without_a_zone_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any sentence will do
        parse_rfc3339(text)
