from __future__ import annotations

import pytest

from gpu_pruner.model.signals import DeviceId, Period, PodName


@pytest.mark.parametrize(("moment", "last"), [(6000.0, 99), (6059.9, 99), (6060.0, 100)])
def test_a_period_ends_with_the_last_whole_step(moment: float, last: int) -> None:
    period = Period.ending(moment, length=300, step_seconds=60)
    assert (period.first, period.last, period.steps) == (last - 4, last, 5)
    assert period.end <= moment < period.end + 60


def test_a_length_is_rounded_up_to_whole_steps() -> None:
    assert Period.ending(6000, length=301, step_seconds=60).steps == 6
    assert Period.ending(6000, length=2100, step_seconds=120).steps == 18


def test_a_period_begins_where_its_first_step_begins() -> None:
    period = Period(first=10, last=12, step_seconds=60)
    assert (period.start, period.end, period.steps) == (600, 780, 3)
    assert Period(first=5, last=3, step_seconds=60).steps == 0


def test_a_slice_knows_its_board() -> None:
    assert DeviceId("GPU-x", "7").board == DeviceId("GPU-x")
    assert DeviceId("GPU-x").board == DeviceId("GPU-x")
    assert [str(DeviceId("GPU-x", "7")), str(DeviceId("GPU-x"))] == ["GPU-x/7", "GPU-x"]


def test_a_pod_is_named_with_its_namespace() -> None:
    assert str(PodName("team-a", "nb-0")) == "team-a/nb-0"
