"""The two commands of the README, and the tutorial beside them, typed as they stand there.

`make demo` is started in a folder like a checkout whose `.venv` is there already; its file of
variables and its controller are those that it names itself, as a reader would copy them.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from support.apart import APART, is_of_the_demo
from support.pages import PAGES, Command, blocks, commands_of
from support.terminal import Terminal, checkout, interrupt

pytestmark = pytest.mark.timeout(300)

PLACES = re.compile(r"`\. (?P<environment>\S+)`.*--controller (?P<controller>http://[\d.:]+)`")
SHOWN_ENVIRONMENT = "/tmp/tmp1a2b3c4d/environment"  # noqa: S108 - what the page shows
SHOWN_CONTROLLER = "http://127.0.0.1:40123"
BUSY = "deployment/team-a/finetune"
STARTS = "make demo"
OWN_WORLD = "play-a-world.md"
FASTER = {"gpu-pruner demo": "gpu-pruner demo --speed 120"}
"""A reader has two minutes."""
RUNS_ALREADY = {
    one.typed: "runs already"
    for page in PAGES
    for one in commands_of(page)
    if one.typed.startswith(STARTS)
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return checkout(tmp_path)


@pytest.fixture
def told(folder: Path, tmp_path: Path) -> Iterator[re.Match[str]]:
    """Start the demo, and return what it tells of itself."""
    log = tmp_path / "demo.log"
    with log.open("wb") as sink:
        demo = subprocess.Popen(
            STARTS.split(),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
    try:
        yield until_told(demo, log)
    finally:
        interrupt(demo)


def until_told(demo: subprocess.Popen[bytes], log: Path) -> re.Match[str]:
    deadline = time.monotonic() + 60
    while not (found := PLACES.search(log.read_text(encoding="utf-8"))):
        assert demo.poll() is None, log.read_text(encoding="utf-8")
        assert time.monotonic() < deadline, log.read_text(encoding="utf-8")
        time.sleep(0.1)
    return found


def test_the_demo_can_be_looked_at_as_the_tutorial_says(folder: Path, told: re.Match[str]) -> None:
    instead = {SHOWN_ENVIRONMENT: told["environment"], SHOWN_CONTROLLER: told["controller"]}
    with Terminal(folder, instead=instead) as terminal:
        until_active(terminal, told["controller"])
        followed = [
            block
            for page in PAGES
            if page.name != OWN_WORLD
            for block in blocks(page)
            if is_of_the_demo(block)
        ]
        for block in followed:
            terminal.follow(block, apart={**APART, **RUNS_ALREADY})
    assert {"README.md", "look-at-the-demo.md"} == {one.page.name for one in followed}


def test_the_world_on_the_page_can_be_played_and_ends_as_it_says(folder: Path) -> None:
    [page] = [one for one in PAGES if one.name == OWN_WORLD]
    with Terminal(folder, instead=FASTER) as terminal:
        for block in blocks(page):
            terminal.follow(block, apart=APART)
        printed = terminal.type(Command("", "gpu-pruner demo --print-world", None))
    assert len(yaml.safe_load(printed)["workloads"]) >= 14


def until_active(terminal: Terminal, controller: str) -> None:
    """Wait until the controller has looked: a reader is not as fast as a test."""
    asks = f"gpu-pruner explain {BUSY} --controller {controller} || true"
    deadline = time.monotonic() + 120
    while "active (GpuActive)" not in terminal.type(Command("", asks, None)):
        assert time.monotonic() < deadline


def test_the_two_commands_are_those_of_the_makefile() -> None:
    typed = [one.typed.partition("#")[0].split() for one in commands_of(PAGES[0])]
    assert [one for one in typed if one[0] == "make"] == [["make", "demo"], ["make", "test"]]
