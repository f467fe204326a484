"""An exporter's page is read for what we know, whole or not at all."""

from __future__ import annotations

import math

import pytest

from gpu_pruner.errors import ObservationError
from gpu_pruner.model.signals import Signal
from gpu_pruner.observe.exposition import read_labels, read_page
from gpu_pruner.observe.profiles import BY_METRIC

PAGE = """\
# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).
# TYPE DCGM_FI_DEV_SM_CLOCK gauge
DCGM_FI_DEV_SM_CLOCK{gpu="0", UUID="GPU-4444",container="",namespace="",pod=""} 139
# HELP DCGM_FI_PROF_GR_ENGINE_ACTIVE Ratio of time the graphics engine is active.
# TYPE DCGM_FI_PROF_GR_ENGINE_ACTIVE gauge
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-a",modelName="NVIDIA L40S",pod="main}-0"} 0.250000
# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",UUID="GPU-a"} 123456789 1700000000000
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a"} NaN
"""


def test_known_fields_are_read_and_others_skipped() -> None:
    engine, energy, util = read_page(PAGE, BY_METRIC).samples
    assert [one.field.signal for one in (engine, energy, util)] == [
        Signal.ENGINE,
        Signal.ENERGY,
        Signal.UTIL,
    ]
    assert (engine.value, energy.value) == (0.25, 123456789.0)
    assert math.isnan(util.value)


def test_labels_are_read_with_all_their_quirks() -> None:
    engine, *_ = read_page(PAGE, BY_METRIC).samples
    assert read_labels(engine.series) == {
        "gpu": "0",
        "UUID": "GPU-a",
        "modelName": "NVIDIA L40S",
        "pod": "main}-0",
    }
    assert read_labels(r'DCGM_FI_DEV_GPU_UTIL{ a="x\"y" , b="", }') == {"a": 'x"y', "b": ""}


def test_a_line_ends_only_where_the_format_says() -> None:
    page = 'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-a",hpc_job="a\u2028b\x0bc"} 7\r\nup 1\n'
    (found,) = read_page(page, BY_METRIC).samples
    assert found.value == 7.0
    assert read_labels(found.series)["hpc_job"] == "a\u2028b\x0bc"


def test_other_metrics_are_named() -> None:
    assert read_page(PAGE + "up 1\n", BY_METRIC).others == {"DCGM_FI_DEV_SM_CLOCK", "up"}


@pytest.mark.parametrize("page", ["", "# EOF\n", "up 1\n", "<html><body>Log in</body></html>"])
def test_a_page_of_other_things_has_no_samples(page: str) -> None:
    assert read_page(page, BY_METRIC).samples == ()


@pytest.mark.parametrize(
    "line",
    [
        'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a"}',
        'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a"} many',
        'DCGM_FI_DEV_GPU_UTIL{gpu="0",UU',
    ],
)
def test_a_broken_line_condemns_the_page(line: str) -> None:
    with pytest.raises(ObservationError, match="a line cannot be read: DCGM_FI_DEV_GPU_UTIL"):
        read_page(PAGE + line, BY_METRIC)


@pytest.mark.parametrize("series", ["DCGM_FI_DEV_GPU_UTIL{gpu=0}", 'DCGM_FI_DEV_GPU_UTIL{gpu="0}'])
def test_broken_labels_are_an_error(series: str) -> None:
    with pytest.raises(ObservationError, match="cannot be read"):
        read_labels(series)
