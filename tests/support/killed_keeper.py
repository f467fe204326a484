"""Kills a process in the middle of writing history, again and again, and says what became of it.

Run as a program: forks a child per kill point. The child keeps six cycles and says after each
that it is kept; at its n-th step within the ledger's code or the libraries below it kills itself
with SIGKILL. Then a new process settles what was left, and one line of JSON tells how many cycles
were acknowledged, and how many are in the database.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType

from pydantic import SecretStr
from support.decisions import SERVER
from support.ledgers import a_keeper, cycle, holding, rows
from support.manual_clock import NOON

from gpu_pruner.model.verdict import Verdict
from gpu_pruner.record.ledger.database import Database
from gpu_pruner.settings.ledger import LedgerSettings

_VERDICTS = (Verdict.IDLE, Verdict.ACTIVE, Verdict.UNKNOWN) * 2


def keep_until_killed(
    settings: LedgerSettings, later: LedgerSettings, kill_at: int, acknowledged: int
) -> None:
    """Keep the cycles, the last one with other settings; never returns."""
    steps = 0

    def step(_frame: FrameType, what: str, _argument: object) -> None:
        nonlocal steps
        if what.startswith("c_"):  # calls into C are what may write, before and after
            steps += 1
            if steps == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    keeper = a_keeper(settings, "killed")
    back = settings is not later
    if not back:
        sys.setprofile(step)
    for number, verdict in enumerate(_VERDICTS):
        if number == len(_VERDICTS) - 1:
            keeper._database = Database(later)
            sys.setprofile(step)
        at = NOON + 60 * number
        keeper.take(cycle(holding(SERVER, 2, verdict=verdict), at=at, number=number + 1))
        if keeper.state.in_memory == 0:
            os.write(acknowledged, b"+")
    sys.setprofile(None)
    os.write(acknowledged, b"." + str(steps).encode())
    os._exit(0)


def one_kill(kill_at: int, *, database: str) -> tuple[str, dict[str, object]]:
    """Kill one child, and return what it had acknowledged, and what is there afterwards."""
    with tempfile.TemporaryDirectory() as directory:
        here = LedgerSettings(directory=Path(directory))
        nowhere = SecretStr(f"sqlite:///{directory}/missing/ledger.sqlite")
        there = here.model_copy(update={"dsn": nowhere})
        settings = here if database == "there" else there
        later = there if database == "away" else here
        if database == "back":
            a_keeper(here, "before").settle(now=NOON)  # makes the tables: the steps are to store
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            keep_until_killed(settings, later, kill_at, writing)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            told = pipe.read().decode()
        os.waitpid(child, 0)
        after = a_keeper(here, "after")
        after.settle(now=NOON + 600)
        found = {
            "cycles": [one["cycle_id"] for one in rows(here, "cycles")],
            "decisions": len(rows(here, "decisions")),
            "seconds": sum(one["seconds"] for one in rows(here, "gpu_time")),
            "lost": after.state.lost,
        }
        return told, found


def main() -> None:
    """Find out how many steps there are, and kill at that many of them, evenly spread."""
    database, kills = sys.argv[1], int(sys.argv[2])
    told, _ = one_kill(sys.maxsize, database=database)
    steps = int(told.partition(".")[2])
    for n in range(kills):
        kill_at = 1 + n * steps // kills
        told, found = one_kill(kill_at, database=database)
        print(json.dumps({"kill_at": kill_at, "acknowledged": told.count("+"), **found}))  # noqa: T201


if __name__ == "__main__":
    main()
