"""The picture of a window: that it is drawn, at its size, with its words, and of the right devices.

What it looks like is looked at by people; what it draws comes from `decide.showing`.
"""

from __future__ import annotations

import importlib.util
import re
import struct
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from support.asked import asked
from support.story import Story
from support.world import World

from gpu_pruner.cli.explain import _picture
from gpu_pruner.cli.plotting import Picture, drawable, save
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.loop.explaining import Question

GPUS = ["idle"] * 5 + [{"engine": "0.412 from -20m to -18m", "gap": "-12m to -9m"}]


async def pictures(*, gpus: list[object] | None = None) -> tuple[list[Picture], Story]:
    story = Story(World({"train": {"gpus": GPUS if gpus is None else gpus}}))
    answer = await asked(story, Question(root=story.world.root("train")))
    return [_picture(one) for one in answer.examined], story


async def test_a_png_is_800_pixels_wide(tmp_path: Path) -> None:
    told, story = await pictures()
    save(told, tmp_path / "window.png", rules=story.rules)
    drawn = (tmp_path / "window.png").read_bytes()
    assert drawn[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", drawn[16:24])
    assert width == 800
    assert 200 < height < 3000


async def test_an_svg_has_its_words_as_words_and_the_busy_device_first(tmp_path: Path) -> None:
    told, story = await pictures()
    save(told, tmp_path / "window.svg", rules=story.rules)
    words = re.findall(r"<text[^>]*>([^<]*)</text>", (tmp_path / "window.svg").read_text())
    devices = [one.partition(":")[0] for one in words if one.startswith("GPU-")]
    assert devices == ["GPU-train-0-5", "GPU-train-0-0", "GPU-train-0-1", "GPU-train-0-2"]
    wanted = {"deployment/team-a/train", "engine", "utilisation", "energy", "0.412"}
    assert wanted <= set(words)
    assert "Grey: no sample" in " ".join(words)


async def test_the_same_window_gives_the_same_bytes(tmp_path: Path) -> None:
    told, story = await pictures()
    for name in ("one.svg", "two.svg"):
        save(told, tmp_path / name, rules=story.rules)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


async def test_what_people_wrote_is_no_formula(tmp_path: Path) -> None:
    told, story = await pictures()
    wild = [replace(one, sentence="by alice: $\\frac{ <b>& $$ \x1b[31m") for one in told]
    save(wild, tmp_path / "window.svg", rules=story.rules)
    save(wild, tmp_path / "window.png", rules=story.rules)
    drawn = (tmp_path / "window.svg").read_text()
    assert r"$\frac{" in "".join(ET.fromstring(drawn).itertext())  # noqa: S314 - our own


async def test_a_workload_that_was_not_measured_is_drawn_as_that(tmp_path: Path) -> None:
    told, story = await pictures(gpus=[{"labels": "none"}])
    save(told, tmp_path / "window.svg", rules=story.rules)
    assert "Nothing was measured." in (tmp_path / "window.svg").read_text()


@pytest.mark.parametrize(
    ("name", "words"),
    [("window.pdf", "must end in .png or .svg"), ("window", "must end"), ("no/w.png", "no folder")],
)
def test_a_file_that_cannot_be_drawn_is_refused_at_once(
    tmp_path: Path, name: str, words: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"--plot: .*{words}"):
        drawable(tmp_path / name)


def test_without_matplotlib_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "matplotlib" else found(name)
    )
    with pytest.raises(ConfigurationError, match=r"pip install 'gpu-pruner\[plot\]'"):
        drawable(tmp_path / "window.png")
