"""The benchmarks can be run: what they print is told by themselves, never asserted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_benchmark_prints_its_figures_and_ends_well_whatever_they_are():
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--only", "deciding", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    goals = [one for one in figures if one["at_most"] is not None]
    assert [one["what"] for one in goals] == [
        "deciding 10,000 workloads",
        "deciding 10,000 workloads against 1,000",
    ]
    assert all(one["measured"] > 0 for one in figures)
