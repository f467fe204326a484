"""What `backtest` refuses before it asks anybody, and what it prints."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from gpu_pruner.cli.backtest import backtest
from gpu_pruner.cli.backtest_plot import save
from gpu_pruner.cli.backtest_table import print_backtest
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.record.backtest import Backtest, NamespaceRow, SettingOutcome

URL = ("--prometheus-url", "http://127.0.0.1:9")
TALLY = {"pauses": 200, "workloads_paused": 9, "open_pauses": 1}


def setting(window: float, hours: float, regrets: int, *, best: bool = False) -> SettingOutcome:
    told = TALLY | {"gpu_hours_returned": hours, "regrets": regrets}
    return SettingOutcome(
        window_seconds=window,
        idle_threshold=0.01,
        notice_seconds=900.0,
        recommended=best,
        namespaces=(NamespaceRow(namespace="team-[bold]a", **told),),
        **told,
    )


ANSWER = Backtest(
    begin="2026-01-01T00:00:00Z",
    end="2026-01-08T00:00:00Z",
    gpus=8,
    workloads=4,
    gpu_hours_held=1000.0,
    gpu_hours_seen=990.0,
    grouped_by="pod",
    settings=(setting(1200.0, 300.0, 20), setting(2100.0, 250.0, 2, best=True)),
    recommendation="35m 0.01 15m: most",
    remarks=("1.0% is missing",),
)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--windows", "soon"), "is not a length of time"),
        (("--windows", "35m,"), "is not a length of time"),
        (("--thresholds", "0.01,2"), "is not a ratio between 0 and 1"),
        (("--thresholds", "nan"), "is not a ratio between 0 and 1"),
        (("--thresholds", "many"), "is not a ratio between 0 and 1"),
        (("--notices", "-5"), "is not between 0 and 366 days"),
        (("--since", "a week"), "is not a length of time"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_flag(flags: tuple[str, str], words: str) -> None:
    done = CliRunner().invoke(backtest, [*URL, *flags])
    assert done.exit_code == 2
    assert words in done.output
    assert flags[0] in done.output


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--windows", "0"), "--windows: a window has to be longer than 0"),
        (("--since", "2h"), "--since: 2h of history is too short: .* take 2h30m"),
        (("--windows", ",".join(map(str, range(10, 40)))), "--windows: 120 combinations"),
        (("--plot", "hours.pdf"), "--plot: .*must end in"),
    ],
)
def test_a_grid_that_no_history_answers_is_refused(flags: tuple[str, str], words: str) -> None:
    done = CliRunner().invoke(backtest, [*URL, *flags])
    assert isinstance(done.exception, ConfigurationError)
    with pytest.raises(ConfigurationError, match=words):
        raise done.exception


def test_exporters_have_no_past() -> None:
    done = CliRunner().invoke(backtest, ["--exporter", "http://127.0.0.1:9"])
    assert isinstance(done.exception, ConfigurationError)
    assert "needs history" in str(done.exception)


def test_the_table_marks_the_best_and_tells_it_by_namespace(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_backtest(ANSWER)
    printed = capsys.readouterr()
    (line,) = [one for one in printed.out.splitlines() if one.endswith("recommended")]
    assert line.split() == ["35m", "0.01", "15m", "250.0", "25.0%", "200", "9", "2", "1.0%",
                            "recommended"]  # fmt: skip
    assert "team-[bold]a" in printed.out
    assert printed.err == "gpu-pruner: 1.0% is missing\n"


def test_the_same_backtest_gives_the_same_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("one.svg", "two.svg", "three.png"):
        save(ANSWER, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert "35m 0.01 15m, recommended" in (tmp_path / "one.svg").read_text()
    assert (tmp_path / "three.png").read_bytes().startswith(b"\x89PNG")


def test_json_carries_what_the_table_shows() -> None:
    assert msgspec.json.decode(msgspec.json.encode(ANSWER), type=Backtest) == ANSWER
