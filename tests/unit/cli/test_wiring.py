from __future__ import annotations

import pytest

from gpu_pruner.cli.wiring import kept_seconds
from gpu_pruner.settings.schema import Settings


@pytest.mark.parametrize("notice", [900.0, 7200.0])
def test_samples_are_kept_for_as_long_as_the_check_before_a_pause_looks_back(notice: float) -> None:
    settings = Settings(notice_seconds=notice)
    assert kept_seconds(settings) >= max(notice, settings.window_seconds) + settings.settle_seconds
    assert kept_seconds(settings) >= 2 * settings.window_seconds
