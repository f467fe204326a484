from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
KILLS = 30


@pytest.mark.parametrize("database", ["there", "away", "back"])
def test_kill_nine_anywhere_loses_nothing_acknowledged(database: str) -> None:
    """A cycle is committed, or it is in the spool, or on its way from there into the database."""
    done = subprocess.run(
        [sys.executable, "-m", "support.killed_keeper", database, str(KILLS)],
        cwd=TESTS,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    kills = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(kills) == KILLS
    for kill in kills:
        assert kill["lost"] == 0, kill
        ours = [f"killed-{number}" for number in range(1, len(kill["cycles"]) + 1)]
        assert kill["cycles"] == ours, kill
        assert len(ours) >= kill["acknowledged"], kill
        # A cycle is there as a whole or not at all: its decision, and its minute of two GPUs.
        assert kill["decisions"] == len(ours), kill
        assert kill["seconds"] == 120 * max(0, len(ours) - 1), kill
    # The kills did hit before and between acknowledgements; on the way back there are five before.
    hit = {kill["acknowledged"] for kill in kills}
    assert min(hit) == (5 if database == "back" else 0)
    assert len(hit) > 1 or database == "back"
