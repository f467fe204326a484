"""`gpu-pruner report` against a computation from the raw history of the same days."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.ledgers import A100, H100
from support.lived_days import BEGIN, L40S, Days, hours, random_cluster
from support.manual_clock import ManualClock
from support.small_cluster import MINUTE, App

from gpu_pruner.cli import report as command
from gpu_pruner.settings.ledger import LedgerSettings

HELD = ("active", "idle", "unknown")
PRICES = {H100: 2.5, A100: 1.1}
NAMES: dict[str, Callable[[App], str]] = {
    "total": lambda _: "",
    "namespaces": lambda app: app.root.namespace,
    "owners": lambda app: app.owner,
    "workloads": lambda app: app.root.ref,
}
COLUMNS = {
    "heldGpuHours": HELD,
    "idleGpuHours": ("idle",),
    "unknownGpuHours": ("unknown",),
    "returnedGpuHours": ("paused",),
}
MINUTES_OF_A_DAY = 1440


async def lived(settings: LedgerSettings, seed: int, days: int) -> Days:
    told = Days(random_cluster(seed, days * MINUTES_OF_A_DAY), settings)
    await told.live()
    return told


def reported(days: Days, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    settings = days.settings
    config, prices = folder / "settings.yaml", folder / "prices.yaml"
    dsn = "" if settings.dsn is None else f"  dsn: {settings.dsn.get_secret_value()}\n"
    config.write_text(f"ledger:\n  directory: {settings.directory}\n{dsn}", encoding="utf-8")
    table = "".join(f"  {model}: {price}\n" for model, price in PRICES.items())
    prices.write_text(f"currency: USD\nper_gpu_hour:\n{table}", encoding="utf-8")
    end = ManualClock(BEGIN + days.cluster.minutes * MINUTE + 60)
    monkeypatch.setattr(command, "clock_from_environment", lambda: end)
    given = ["--config", str(config), "--prices", str(prices), "--output", "json"]
    done = CliRunner().invoke(command.report, given, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    found["total"] = [found["total"]]
    return found


def assert_hours(days: Days, report: dict[str, Any]) -> None:
    """Every figure of every row is that of the raw history, sampled when the cycles ran, to 1 %."""
    for rows, name in NAMES.items():
        for column, states in COLUMNS.items():
            true = hours(days.sampled, days.cluster.apps, name, *states)
            told = {row["name"]: row[column] for row in report[rows]}
            assert told.keys() == {name(app) for app in days.cluster.apps}
            for one, found in told.items():
                assert found == pytest.approx(true[one], rel=0.01, abs=1e-3), (rows, column, one)


def assert_costs(days: Days, report: dict[str, Any]) -> None:
    """So is the money, and the hours that have no price."""
    for rows, name in NAMES.items():
        for column, state in (("idleCost", "idle"), ("returnedCost", "paused")):
            for row in report[rows]:
                money = bare = 0.0
                for (number, model, found), spent in days.sampled.items():
                    if name(days.cluster.apps[number]) == row["name"] and found == state:
                        money += PRICES.get(model, 0.0) * spent / 3600
                        bare += 0.0 if model in PRICES else spent / 3600
                told = row[column]
                assert float(told["amount"] or 0) == pytest.approx(money, rel=0.01, abs=0.011)
                assert told["gpuHoursWithoutPrice"] == pytest.approx(bare, rel=0.01, abs=1e-3)


def assert_exact(days: Days, report: dict[str, Any]) -> None:
    """To the second it is off by no more than one cycle for each change of state.

    What is held and returned lasts for hours, and so that is less than 1 %.
    """
    told = {row["name"]: row for row in report["workloads"]}
    for number, app in enumerate(days.cluster.apps):
        most = days.changes[number] * MINUTE * len(app.gpus) / 3600
        for column, states in COLUMNS.items():
            true = hours(days.exact, days.cluster.apps, lambda one: one.root.ref, *states)
            found = told[app.root.ref][column]
            assert abs(found - true[app.root.ref]) <= most, (column, app.root)
            if column in {"heldGpuHours", "returnedGpuHours"}:
                assert found == pytest.approx(true[app.root.ref], rel=0.01), (column, app.root)


async def assert_true(
    settings: LedgerSettings, folder: Path, patch: pytest.MonkeyPatch, *, seed: int, days: int
) -> None:
    found = await lived(settings, seed, days)
    report = reported(found, folder, patch)
    assert found.pauses >= 7 * days
    assert report["modelsWithoutPrice"] == [L40S]
    assert min(row["idleGpuHours"] for row in report["workloads"]) > 0
    assert_hours(found, report)
    assert_costs(found, report)
    assert_exact(found, report)


@pytest.mark.timeout(240)
async def test_a_report_says_what_the_raw_history_says(
    ledger_settings: LedgerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await assert_true(ledger_settings, tmp_path, monkeypatch, seed=1, days=1)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(2, 6))
async def test_so_it_does_of_whole_weeks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    settings = LedgerSettings(directory=tmp_path)
    await assert_true(settings, tmp_path, monkeypatch, seed=seed, days=7)
