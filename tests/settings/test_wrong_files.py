"""Settings files that are wrong, each with the exact words that it is refused with beside it.

A case is `wrong/NAME.yaml` and `wrong/NAME.txt`; no Python is needed to add one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_pruner.cli.given import loaded_from_flags
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.settings.document import parse_document

WRONG = Path(__file__).parent / "wrong"
FILES = sorted(WRONG.glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_wrong_file_is_refused_in_these_words(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(WRONG)  # so that places are short
    monkeypatch.delenv("PROMETHEUS_TOKEN", raising=False)
    with pytest.raises(ConfigurationError) as refused:
        loaded_from_flags({"config": Path(file.name)})
    assert str(refused.value) == file.with_suffix(".txt").read_text(encoding="utf-8").rstrip("\n")
    assert "s3cret" not in str(refused.value)


def test_there_are_enough_of_them_and_none_without_its_words() -> None:
    assert len(FILES) >= 40
    assert {one.stem for one in FILES} == {one.stem for one in WRONG.glob("*.txt")}


def test_what_is_no_file_is_refused_with_its_name(tmp_path: Path) -> None:
    large = tmp_path / "large.yaml"
    large.write_text("# " + "x" * (1 << 20) + "\n")
    for file, says in (
        (tmp_path / "none.yaml", "cannot be read: No such file or directory"),
        (tmp_path, "cannot be read: Is a directory"),
        (large, "is larger than 1024 KiB"),
    ):
        with pytest.raises(ConfigurationError) as refused:
            loaded_from_flags({"config": file})
        assert str(refused.value) == f"{file}: {says}"


def test_a_file_that_may_not_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(self: Path, mode: str) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbidden)  # root may read everything
    with pytest.raises(ConfigurationError, match="cannot be read: Permission denied"):
        loaded_from_flags({"config": tmp_path / "settings.yaml"})


@pytest.mark.parametrize(
    "content", ["", "# nothing but a comment\n", "---\n", "budget:\n  # all in comments\n", "~\n"]
)
def test_a_file_that_says_nothing_leaves_the_defaults(
    tmp_path: Path, content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PROMETHEUS_TOKEN", raising=False)
    file = tmp_path / "settings.yaml"
    file.write_text(content)
    assert loaded_from_flags({"config": file}).settings == loaded_from_flags({}).settings


@pytest.mark.parametrize("word", ["off", "no", "false", "False", '"false"'])
def test_a_switch_may_be_switched_off_in_every_way_of_yaml(tmp_path: Path, word: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(f"liveness: {word}\n")
    assert loaded_from_flags({"config": file}).settings.liveness is False


def test_a_file_of_brackets_is_given_up_where_it_is_too_deep() -> None:
    """The library needs minutes to the end of such a file, which a ConfigMap can hold."""
    with pytest.raises(ConfigurationError, match=r"wrong\.yaml:1:\d+: a.*20 levels deep"):
        parse_document("a: " + "[" * 200_000, name="wrong.yaml")
