"""What people read: the whole text, word for word. A changed word is a changed file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.asked import asked
from support.story import Story
from support.world import World

from gpu_pruner.cli.explain import written
from gpu_pruner.cli.explanation_table import measured, number, print_explanation
from gpu_pruner.loop.explaining import Question
from gpu_pruner.record.explanation_rows import Explanation, SettingRow

TEXTS = Path(__file__).with_name("explained")
SETTINGS = (
    SettingRow("window_seconds", "35m", "default"),
    SettingRow("notice_seconds", "10m", "--ack-grace-period"),
)
WARNED = {
    "phase": "Warned",
    "warned_at": "-5m",
    "pause_at": "10m",
    "warned_mode": "scale-down",
    "confirmations": 2,
    "idle_since": "-40m",
    "nominated_at": "-6m",
    "object_name": "deployment-train-0a1b2c3d",
}
TOLD: dict[str, dict[str, Any]] = {
    "busy": {"gpus": ["idle", {"engine": "0.412 from -20m to -18m", "energy": "71W"}]},
    "kept": {
        "gpus": [{"gap": "-25m to -10m"}],
        "intent": {"keep_until": "2h", "keep_by": "alice", "keep_reason": "a demonstration"},
    },
    "warned": {"gpus": 1, "book": WARNED},
    "exempt": {"gpus": 1, "owner": {"annotations": {"gpu-pruner.io/exempt": "true"}}},
    "no-primary": {"gpus": [{"engine": "absent", "util": "absent", "power": "moving"}]},
    "slice": {"pods": [{"gpus": [{"uuid": "GPU-board", "slice": "3"}]}]},
    "util-only": {"gpus": [{"engine": "absent"}]},
    "young": {"pods": [{"gpus": 1, "ready": "-10m"}]},
    "told": {
        "gpus": 1,
        "owner": {
            "annotations": {
                "gpu-pruner.io/owner": "alice@example.com, <!channel>",
                "gpu-pruner.io/slack-mentions": "<@U0123ABCD>",
            }
        },
    },
    "bare": {"kind": "Pod", "gpus": 1},
    "unnamed": {"gpus": [{"labels": "none"}]},
    "paused": {
        "pods": [],
        "owner": {"halted": True, "desired": 0},
        "book": {"phase": "Paused", "paused_at": "-3h", "gpus": 2, "replicas": 2},
    },
}


async def explained(spec: dict[str, Any]) -> Explanation:
    story = Story(World({"train": spec}))
    question = Question(root=story.world.root("train"))
    return written(question, await asked(story, question), settings=SETTINGS)


@pytest.mark.parametrize("name", TOLD)
async def test_the_text_is_word_for_word(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_explanation(await explained(TOLD[name]))
    text = "".join(f"{line.rstrip()}\n" for line in capsys.readouterr().out.splitlines())
    file = TEXTS / f"{name}.txt"
    if os.environ.get("WRITE_EXPLAINED"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8"), "if it should read so: WRITE_EXPLAINED=1"


@pytest.mark.parametrize("name", TOLD)
async def test_the_json_has_its_shape_and_says_the_same(name: str) -> None:
    told = await explained(TOLD[name])
    assert msgspec.json.decode(msgspec.json.encode(told), type=Explanation) == told


async def test_nothing_that_others_wrote_steers_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    wild = {"gpus": [{"model": "\x1b[31mH100 [bold]x[/bold]\r\u202eevil"}]}
    print_explanation(await explained(wild))
    text = capsys.readouterr().out
    assert not set("\x1b\r\u202e") & set(text)
    assert "H100 [bold]x[/bold]" in text


def test_every_text_is_of_a_case() -> None:
    assert {one.stem for one in TEXTS.iterdir()} == TOLD.keys()


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.41234, "0.412"), (0.5, "0.5"), (95.0, "95"), (1.2345e10, "1.234e+10")],
)
def test_a_number_has_the_digits_that_somebody_reads(value: float, text: str) -> None:
    assert number(value) == text


def test_bytes_are_written_in_the_units_that_people_think_in() -> None:
    assert measured(8 * 2.0**30, "B") == "8 GiB"
    assert measured(12.5e6, "B/s") == "12.5 MB/s"
    assert measured(0.41, "ratio") == "0.41 ratio"
    assert measured(3, "") == "3"
