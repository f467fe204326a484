"""The picture in the README: its script still draws, and what it shows is the demo's own story."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from gpu_pruner.model.verdict import Reason
from gpu_pruner.sim.story_file import first_story

DOCS = Path(__file__).parents[2] / "docs"
SVG = "{http://www.w3.org/2000/svg}"
REASONS = {one.value for one in Reason}


def lines_of(file: Path) -> list[str]:
    """Return the text of a picture from top to bottom, each line from left to right."""
    rows: dict[float, list[tuple[float, str]]] = {}
    tree = ET.parse(file)  # noqa: S314 - a file of ours
    for one in tree.getroot().iter(f"{SVG}text"):
        if "clip-path" in one.attrib:
            place = (float(one.attrib["x"]), (one.text or "").replace("\xa0", " ").strip())
            rows.setdefault(float(one.attrib["y"]), []).append(place)
    return [" ".join(text for _, text in sorted(rows[y])).strip() for y in sorted(rows)]


def line_of(lines: list[str], ref: str) -> str:
    return next(one for one in lines if one.startswith(f"{ref} "))


def check_that_it_shows_the_story(lines: list[str]) -> None:
    for part in first_story().workloads:
        at = next(place for place, one in enumerate(lines) if one.startswith(f"{part.ref} "))
        assert lines[at + 1] == part.told


def test_the_picture_in_the_readme_shows_how_the_story_ends():
    file = DOCS / "images" / "demo.svg"
    lines = lines_of(file)
    assert "The story ended as told." in lines[0], "make it again: make recording"
    check_that_it_shows_the_story(lines)
    for part in first_story().workloads:
        shown = set(line_of(lines, part.ref).split()[1:])
        assert part.ending.value in shown
        assert shown & REASONS <= {one.value for one in part.reasons}
    assert "http" not in file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")


@pytest.mark.timeout(300)
def test_the_script_draws_what_the_controller_says_in_its_first_minutes(tmp_path):
    file = tmp_path / "demo.svg"
    subprocess.run(
        [
            *(sys.executable, DOCS / "record_demo.py", "--output", file),
            *("--minutes", "0", "--speed", "1"),
        ],
        check=True,
        timeout=200,
    )
    lines = lines_of(file)
    check_that_it_shows_the_story(lines)
    said = {
        part.ref: REASONS & set(line_of(lines, part.ref).split())
        for part in first_story().workloads
    }
    assert said["deployment/team-b/standby"] == {"Exempt"}
    assert all(said.values()), "every line has a reason of the controller's"
