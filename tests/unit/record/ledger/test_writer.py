from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, cast

from structlog.testing import capture_logs
from support.decisions import SERVER
from support.ledgers import a_keeper, cycle, cycles, holding, rows
from support.manual_clock import NOON

from gpu_pruner.record.board import Board
from gpu_pruner.record.ledger.state import LedgerState
from gpu_pruner.record.ledger.writer import Ledger, opened
from gpu_pruner.record.metrics import exposition
from gpu_pruner.settings.ledger import LedgerSettings

if TYPE_CHECKING:
    from gpu_pruner.record.ledger.keeper import Keeper
    from gpu_pruner.record.report import CycleReport


class StuckKeeper:
    """Stands still in the first report until it is let go, as a disk may."""

    def __init__(self) -> None:
        self.state = LedgerState()
        self.taken: list[int] = []
        self.entered = threading.Event()
        self.go_on = threading.Event()

    def take(self, report: CycleReport) -> None:
        self.entered.set()
        assert self.go_on.wait(60)
        self.taken.append(report.number)

    def close(self) -> None:
        pass


def test_a_cycle_never_waits_for_a_disk_that_stands_still() -> None:
    stuck = StuckKeeper()
    ledger = Ledger(cast("Keeper", stuck), most_waiting=3)
    told = cycles(begin=NOON, count=8)
    ledger.record(told[0])
    assert stuck.entered.wait(60)
    with capture_logs() as logs:
        for report in told[1:]:
            ledger.record(report)  # would hang here
    assert (ledger.state().backlog, ledger.state().lost) == (3, 4)
    assert [one["event"] for one in logs] == ["history is lost"]
    stuck.go_on.set()
    asyncio.run(ledger.close())
    assert stuck.taken == [1, 2, 3, 4]


async def test_an_orderly_end_writes_what_is_waiting(tmp_path: Path) -> None:
    settings = LedgerSettings(directory=tmp_path)
    ledger = opened(settings)
    for report in cycles(holding(SERVER, 2), begin=NOON, count=5):
        ledger.record(report)
    await ledger.close()
    assert len(rows(settings, "cycles")) == 5
    assert ledger.state().backlog == 0


def test_metrics_tell_how_it_is_doing(tmp_path: Path) -> None:
    board = Board()
    assert "\ngpu_pruner_ledger" not in exposition(board).decode()
    missing = f"sqlite:///{tmp_path}/missing/x"
    keeper = a_keeper(LedgerSettings.model_validate({"dsn": missing, "directory": tmp_path}))
    keeper.take(cycle(at=NOON))
    board.ledger = lambda: keeper.state
    text = exposition(board).decode()
    assert "gpu_pruner_ledger_backlog 1.0" in text
    assert "gpu_pruner_ledger_failures_total 1.0" in text
    assert "gpu_pruner_ledger_lost_total 0.0" in text
    assert "\ngpu_pruner_ledger_last_success_timestamp_seconds " not in text


def test_a_command_without_a_ledger_loads_no_database() -> None:
    code = "import sys, gpu_pruner.cli.commands; print('sqlalchemy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"False\n"
