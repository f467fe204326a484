"""The schema for editors takes what the program takes, and refuses nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from gpu_pruner.settings.editor_schema import editor_schema
from gpu_pruner.settings.fields import all_settings
from gpu_pruner.settings.schema import Settings

WRONG = Path(__file__).parent / "wrong"
DOCS = Path(__file__).parents[2] / "docs"
VALIDATOR = Draft202012Validator(editor_schema())

SEEN_BY_AN_EDITOR = [
    "a_misspelt_name",
    "a_misspelt_name_in_a_list",
    "a_misspelt_name_in_a_section",
    "a_name_in_camel_case",
    "a_name_with_dashes",
    "a_setting_of_a_section_at_the_top",
    "a_section_that_is_a_number",
    "a_section_that_is_a_list",
    "a_number_that_is_text",
    "a_number_that_is_true",
    "a_part_of_a_whole_number",
    "a_number_below_its_least",
    "a_number_above_its_most",
    "a_percentage_for_a_ratio",
    "a_unit_that_is_none",
    "a_negative_duration",
    "a_switch_that_is_a_word",
    "a_switch_that_is_a_number",
    "a_mode_in_other_letters",
    "a_list_that_is_one_word",
    "a_list_with_a_number",
    "a_preset_that_is_unknown",
    "a_section_without_its_url",
    "a_secret_that_is_a_list",
    "everything_at_once",
]


def told(content: object) -> list[str]:
    return [one.message for one in VALIDATOR.iter_errors(content)]


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(editor_schema())


@pytest.mark.parametrize("name", SEEN_BY_AN_EDITOR)
def test_what_the_program_refuses_an_editor_sees(name: str) -> None:
    assert told(yaml.safe_load((WRONG / f"{name}.yaml").read_text("utf-8"))) != []


def examples() -> list[object]:
    pages = [page.read_text("utf-8") for page in DOCS.rglob("*.md")]
    blocks = [block.split("```")[0] for page in pages for block in page.split("```yaml\n")[1:]]
    return [yaml.safe_load(block) for block in blocks if block.startswith("# settings.yaml\n")]


def test_the_examples_of_the_documentation_are_right() -> None:
    found = examples()
    assert found
    assert [told(one) for one in found] == [[] for _ in found]


@pytest.mark.parametrize("length", [90, 90.5, "90", "35m", "1h30m", "1.5h", " 2h "])
def test_a_length_of_time_is_written_in_every_way(length: object) -> None:
    assert told({"window_seconds": length}) == []
    Settings.model_validate({"notice_seconds": length})


@pytest.mark.parametrize("length", ["", "soon", "1h 30m", "-1h", "1w"])
def test_what_is_no_length_of_time_is_refused_by_both(length: str) -> None:
    assert told({"notice_seconds": length}) != []
    with pytest.raises(ValueError, match="length of time|between"):
        Settings.model_validate({"notice_seconds": length})


def test_every_setting_has_its_meaning() -> None:
    parts = [editor_schema(), *editor_schema()["$defs"].values()]  # type: ignore[attr-defined]
    described = {
        name
        for part in parts
        for name, one in part.get("properties", {}).items()
        if one.get("description")
    }
    assert {keys[-1] for keys in all_settings(Settings)} <= described


def test_the_defaults_are_valid() -> None:
    assert told({}) == []
    defaults = {"window_seconds": "35m", "mode": "dry-run", "budget": {"per_hour": 20}}
    assert told(defaults) == []
