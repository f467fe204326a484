"""A changed settings file: what holds from the next cycle on, and what does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs
from support.manual_clock import ManualClock

from gpu_pruner.cli.given import loaded_from_flags
from gpu_pruner.cli.reloading import SettingsFile
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.model.rules import Mode, Rules
from gpu_pruner.record.board import Board
from gpu_pruner.record.metrics import exposition
from gpu_pruner.settings.loading import load_settings
from gpu_pruner.settings.reloading import AT_ONCE, changes, taken_over
from gpu_pruner.settings.schema import Settings


class Stage:
    """A settings file as a ConfigMap mounts it, a board, and the rules that were obeyed."""

    def __init__(self, folder: Path, text: str, flags: dict[str, object] | None = None) -> None:
        self.folder = folder
        self.count = 0
        self.mount(text)
        self.file = folder / "settings.yaml"
        self.file.symlink_to("..data/settings.yaml")
        given = {**(flags or {}), "config": self.file}
        self.settings = SettingsFile(
            file=self.file, flags=given, settings=loaded_from_flags(given).settings
        )
        self.board, self.clock = Board(), ManualClock(1000.0)
        self.obeyed: list[Rules] = []
        self.settings.begin(self.board, self.clock)

    def mount(self, text: str) -> None:
        """Swap the link of the folder, as the kubelet does: the file's own link never changes."""
        self.count += 1
        version = self.folder / f"..{self.count}"
        version.mkdir()
        (version / "settings.yaml").write_text(text)
        fresh = self.folder / "..data_tmp"
        fresh.symlink_to(version.name)
        fresh.rename(self.folder / "..data")

    async def look(self) -> list[dict[str, object]]:
        with capture_logs() as logs:
            await self.settings.look(self.board, self.clock, self.obeyed.append)
        return [dict(one) for one in logs]

    def metric(self, name: str) -> float:
        lines = exposition(self.board).decode().splitlines()
        (line,) = [one for one in lines if one.startswith(f"gpu_pruner_config_last_reload_{name} ")]
        return float(line.split()[1])


async def test_a_swapped_config_map_holds_from_the_next_cycle_on(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "window_seconds: 35m\nbudget: {per_hour: 5}\n")
    assert await stage.look() == []
    stage.mount("window_seconds: 1h\nbudget: {per_hour: 5}\nlisten_port: 9000\nmode: scale-down\n")
    await stage.clock.sleep(60.0)
    (line,) = await stage.look()
    assert line["changed"] == ["window_seconds: 35m → 1h"]
    assert line["needs_restart"] == ["mode: dry-run → scale-down", "listen_port: 8080 → 9000"]
    (rules,) = stage.obeyed
    assert (rules.window_seconds, rules.mode) == (3600.0, Mode.DRY_RUN)
    assert stage.settings.settings.listen_port == 8080
    assert (stage.metric("successful"), stage.metric("success_timestamp_seconds")) == (1, 1061)
    assert await stage.look() == []
    assert len(stage.obeyed) == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("widow_seconds: 1h\n", ":1:1: widow_seconds: is no setting; did you mean window_seconds?"),
        ("a: [\n", "is not YAML"),
        ("", "says nothing any more"),
        ("# confirmations: 3\n", "says nothing any more"),
        ("window_seconds: 1m\n", "shorter than 4 steps"),
    ],
)
async def test_a_wrong_file_changes_nothing_and_is_told_once(
    tmp_path: Path, text: str, says: str
) -> None:
    stage = Stage(tmp_path, "window_seconds: 40m\n")
    stage.mount(text)
    await stage.clock.sleep(60.0)
    (line,) = await stage.look()
    assert line["log_level"] == "error"
    assert says in str(line["error"])
    assert await stage.look() == []
    assert stage.obeyed == []
    assert stage.settings.settings.window_seconds == 2400
    assert (stage.metric("successful"), stage.metric("success_timestamp_seconds")) == (0, 1000)
    stage.mount("window_seconds: 50m\n")
    (line,) = await stage.look()
    assert line["changed"] == ["window_seconds: 40m → 50m"]
    assert (stage.metric("successful"), stage.metric("success_timestamp_seconds")) == (1, 1062)


async def test_a_file_that_is_gone_changes_nothing(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "window_seconds: 40m\n")
    (tmp_path / "..data").unlink()
    (line,) = await stage.look()
    assert "cannot be read" in str(line["error"])
    assert (stage.obeyed, await stage.look()) == ([], [])


async def test_a_file_that_is_still_being_written_is_left_for_the_next_cycle(
    tmp_path: Path,
) -> None:
    class Writing(ManualClock):
        async def sleep(self, seconds: float) -> None:
            stage.mount("confirmations: 4\n")

    stage = Stage(tmp_path, "confirmations: 2\n")
    stage.mount("confirmations: 3\n")
    stage.clock = Writing(1000.0)
    assert (await stage.look(), stage.obeyed) == ([], [])
    stage.clock = ManualClock(1060.0)
    (line,) = await stage.look()
    assert line["changed"] == ["confirmations: 2 → 4"]


async def test_a_flag_wins_over_a_changed_file_too(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "window_seconds: 40m\n", {"duration": 3600.0})
    stage.mount("window_seconds: 50m\nconfirmations: 3\n")
    (line,) = await stage.look()
    assert line["changed"] == ["confirmations: 2 → 3"]
    assert stage.obeyed[0].window_seconds == 3600


async def test_samples_that_were_not_kept_are_not_asked_for(tmp_path: Path) -> None:
    scrape = "scrape: {exporters: ['http://h:9400/metrics']}\n"
    stage = Stage(tmp_path, scrape)
    stage.mount(f"{scrape}window_seconds: 3h\n")
    (line,) = await stage.look()
    assert "needs a restart" in str(line["error"])
    assert stage.obeyed == []
    stage.mount(f"{scrape}window_seconds: 30m\n")
    (line,) = await stage.look()
    assert line["changed"] == ["window_seconds: 35m → 30m"]


async def test_no_secret_is_told(tmp_path: Path) -> None:
    file = "prometheus: {{url: 'http://p', token: {}}}\n"
    stage = Stage(tmp_path, file.format("canary-1"))
    stage.mount(file.format("canary-2"))
    (line,) = await stage.look()
    assert line["needs_restart"] == ["prometheus.token: *** → ***"]
    assert "canary" not in str(line)


def test_a_namespace_becomes_protected_at_once_and_loses_it_by_a_restart_only() -> None:
    old = load_settings({"protected_namespaces": ["kube-system", "team-a"]})
    new = load_settings({"protected_namespaces": ["kube-system", "team-b"]})
    both = taken_over(old, new)
    assert both.protected_namespaces == {"kube-system", "team-a", "team-b"}
    assert [one.name for one in changes(both, new)] == ["protected_namespaces"]


def test_what_cannot_go_together_is_refused() -> None:
    slow = {"exporters": ["http://h:9400/metrics"], "interval_seconds": "10m"}
    old = load_settings({"scrape": slow, "window_seconds": "1h"})
    new = load_settings({"scrape": slow | {"interval_seconds": "1m"}, "window_seconds": "10m"})
    with pytest.raises(
        ConfigurationError, match=r"needs a restart.*\(10m\) is shorter than 4 steps"
    ):
        taken_over(old, new)


def test_what_changes_at_once_is_a_setting_and_reaches_the_rules() -> None:
    assert set(Settings.model_fields) >= AT_ONCE
    assert not AT_ONCE & {"mode", "cycle_seconds", "keep_cap_seconds", "custom_levers", "lease"}


def test_whom_to_tell_changes_at_once() -> None:
    old = load_settings({"audience": {"namespaces": {"team-a": "alice"}}})
    new = load_settings({"audience": {"namespaces": {"team-a": "bob"}, "channel": "#gpu"}})
    directory = taken_over(old, new).rules().directory
    assert [one.text for one in directory.namespaces["team-a"].people] == ["bob"]
    assert directory.channel == "#gpu"
