"""Every way in which telemetry is known to lie, and every deciding defect, has a case."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).parents[2] / "cases"
NAMED = re.compile(r"(dcgm|idle-culling) (\d\.\d) #(\d+)")

ROWS = {
    "dcgm 2.1": 23,  # how idle metrics lie
    "dcgm 2.2": 7,  # how busy metrics lie
    "dcgm 4.1": 60,  # public reports
    "dcgm 5.4": 21,  # the table of synthetic cases
    "idle-culling 2.6": 19,  # defects that decide
}
NOT_DECIDING = {
    ("dcgm 4.1", 44): "killing the exporter froze a GPU: we never touch an exporter",
}


def cases() -> list[dict[str, str]]:
    return [
        case
        for file in sorted(FOLDER.glob("*.yaml"))
        for case in yaml.safe_load(file.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize("table", ROWS)
def test_every_row_has_a_case(table: str) -> None:
    named = {
        int(number)
        for case in cases()
        for where, part, number in NAMED.findall(case["source"])
        if f"{where} {part}" == table
    }
    rows = set(range(1, ROWS[table] + 1))
    without = {number for where, number in NOT_DECIDING if where == table}
    assert rows - named == without


def test_there_are_many_cases() -> None:
    assert len(cases()) >= 150
