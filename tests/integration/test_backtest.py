"""`gpu-pruner backtest` over a real Prometheus whose past is known to the last minute."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from support.prometheus import PrometheusServer, backfill, openmetrics
from support.replayed_by_hand import Gpu, Numbers, Owned, Recorder, Sum, replayed

pytestmark = [
    pytest.mark.prometheus,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("backtest"),
]

LENGTH = 24 * 60
END = 1_780_000_020.0 - 1_780_000_020.0 % 60
BEGIN = END - 60.0 * LENGTH
GRID = [
    Numbers(window, threshold, notice)
    for window in (20, 35, 60)
    for threshold in (0.001, 0.01)
    for notice in (15, 30)
]
FLAGS = ("--windows", "20,35m,1h", "--thresholds", "0.01,0.001", "--notices", "900,30m")


def recorded() -> Recorder:
    made = Recorder(BEGIN, LENGTH, Random(7))  # noqa: S311 - a seeded test

    def gpu(number: int, pod: str, *, first: int = 0, end: int = LENGTH, holes=False) -> Gpu:
        return Gpu(f"GPU-{number:04d}", pod, made.values(holes=holes), first, end)

    made.workloads = [
        Owned("team-a", "statefulset/notebook-1", [gpu(1, "notebook-1-0")],
              owner=("StatefulSet", "notebook-1")),
        Owned("team-a", "deployment/finetune", [gpu(2, "finetune-1-x"), gpu(3, "finetune-1-y")],
              owner=("Deployment", "finetune")),
        Owned("team-b", "pod/batch-1", [gpu(4, "batch-1", holes=True)]),
        Owned("team-b", "pod/batch-2", [gpu(5, "batch-2", holes=True), gpu(6, "batch-2")]),
        Owned("team-b", "pod/early", [gpu(7, "early", end=700)]),
        Owned("team-c", "pod/late", [gpu(8, "late", first=600)]),
        Owned("team-c", "pod/silent", [gpu(9, "silent")]),
    ]  # fmt: skip
    made.workloads[-1].gpus[0].minutes = [0.0] * LENGTH
    return made


PAST = recorded()


def truth(numbers: Numbers, namespace: str | None = None) -> Sum:
    total = Sum()
    for one in PAST.workloads:
        if namespace in {None, one.namespace}:
            found = replayed(one, numbers, lowest=0.001)
            total.hours += found.hours
            total.pauses += found.pauses
            total.workloads += found.workloads
            total.regrets += found.regrets
    return total


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> str:
    return openmetrics(PAST.histories())


@pytest.fixture(scope="module")
def server(history: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    folder = tmp_path_factory.mktemp("backtest")
    with PrometheusServer(folder / "server", data=backfill(history, folder)) as running:
        yield running


def environment(cache: Path) -> dict[str, str]:
    clock = f"{time.time()}:{END + 5}:1e-9"
    return {**os.environ, "GPU_PRUNER_CLOCK": clock, "XDG_CACHE_HOME": str(cache)}


def command(url: str, *more: str) -> list[str]:
    program = (sys.executable, "-m", "gpu_pruner.cli", "backtest")
    return [*program, "--prometheus-url", url, "--since", "1d", *more]


def run(url: str, cache: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(url, *FLAGS, *more),
        env=environment(cache),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def sums(row: dict[str, object]) -> tuple[object, ...]:
    names = ("gpu_hours_returned", "pauses", "workloads_paused", "regrets")
    return tuple(row[name] for name in names)


def expected(one: Sum) -> tuple[object, ...]:
    return pytest.approx(one.hours, abs=0.001), one.pauses, one.workloads, one.regrets


def test_hours_and_regrets_are_those_that_the_past_was_written_with(
    server: PrometheusServer, tmp_path: Path
) -> None:
    done = run(server.url, tmp_path, "--output", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["settings"]) == len(GRID) == 12
    for row, numbers in zip(found["settings"], GRID, strict=True):
        asked = (row["window_seconds"], row["idle_threshold"], row["notice_seconds"])
        assert asked == (60 * numbers.window, numbers.threshold, 60 * numbers.notice)
        assert sums(row) == expected(truth(numbers)), numbers
        assert {one["namespace"]: sums(one) for one in row["namespaces"]} == {
            name: expected(truth(numbers, name)) for name in ("team-a", "team-b", "team-c")
        }
    assert sum(truth(one).regrets for one in GRID) > 10
    assert sum(truth(one).pauses for one in GRID) > 50
    assert found["workloads"] == len(PAST.workloads)
    assert found["gpus"] == 9
    assert found["grouped_by"] == "kube-state-metrics and pod"
    (best,) = [one for one in found["settings"] if one["recommended"]]
    calm = [one for one in found["settings"] if one["regrets"] <= 0.01 * one["pauses"]]
    least = min(one["regrets"] / one["pauses"] for one in found["settings"] if one["pauses"])
    assert best in calm if calm else best["regrets"] / best["pauses"] == least


def test_a_server_that_limits_samples_gives_the_same_answer(
    server: PrometheusServer, history: str, tmp_path: Path
) -> None:
    limit = "--query.max-samples=2500"
    data = backfill(history, tmp_path)
    with PrometheusServer(tmp_path / "server", data=data, arguments=(limit,)) as small:
        cut = run(small.url, tmp_path / "a", "--output", "json")
    whole = run(server.url, tmp_path / "b", "--output", "json")
    assert cut.returncode == 0, cut.stderr
    assert cut.stdout == whole.stdout


def test_closed_time_is_asked_once(server: PrometheusServer, tmp_path: Path) -> None:
    first = run(server.url, tmp_path)
    kept = {one: one.read_bytes() for one in tmp_path.rglob("*.answer")}
    assert len(kept) >= 2
    for one in kept:
        one.write_bytes(b"half of it"[:5])  # what cannot be read is asked again
    again = run(server.url, tmp_path)
    assert again.stdout == first.stdout
    assert {one: one.read_bytes() for one in tmp_path.rglob("*.answer")} == kept
    alone = tmp_path / "alone"
    assert run(server.url, alone, "--no-cache").stdout == first.stdout
    assert list(alone.rglob("*")) == []


def test_a_reader_who_has_seen_enough_gets_no_traceback(
    server: PrometheusServer, tmp_path: Path
) -> None:
    for output in ("table", "json"):
        reading, writing = os.pipe()
        os.close(reading)
        try:
            done = subprocess.run(
                command(server.url, *FLAGS, "--output", output),
                env=environment(tmp_path),
                stdout=writing,
                stderr=subprocess.PIPE,
                text=True,
                timeout=120,
                check=False,
            )
        finally:
            os.close(writing)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert "Exception" not in done.stderr


def test_the_picture_has_every_setting(server: PrometheusServer, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "hours.svg"
    done = run(server.url, tmp_path, "--plot", str(picture))
    assert done.returncode == 0, done.stderr
    drawn = picture.read_text(encoding="utf-8")
    assert "35m 0.01 15m" in drawn
    assert drawn.count("recommended") == done.stdout.count("recommended") == 1


def test_a_history_that_is_not_there_is_said(server: PrometheusServer, tmp_path: Path) -> None:
    env = environment(tmp_path) | {"GPU_PRUNER_CLOCK": f"{time.time()}:{END + 86400}:1e-9"}
    done = subprocess.run(
        command(server.url), env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "has no DCGM series" in done.stderr
