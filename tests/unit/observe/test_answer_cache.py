"""Kept answers: read as written, never half, deleted when nobody asks any more."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gpu_pruner.observe.answer_cache import KEPT, AnswerCache, default_folder

ROWS = [(b'{"UUID":"a"}', b'[[1,"0"]]'), (b'{"UUID":"b"}', b'[[1,"0"]]'), (b"{}", b"[]")]
QUESTION = ("http://prometheus", "up", "1", "2", "60")


def test_an_answer_is_read_as_it_was_kept(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path / "deep" / "folder")
    assert cache.get(QUESTION) is None
    cache.put(QUESTION, ROWS)
    assert cache.get(QUESTION) == ROWS
    for place in range(len(QUESTION)):
        assert cache.get([*QUESTION[:place], "x", *QUESTION[place + 1 :]]) is None
    assert cache.get(("http://prometheusup", "", *QUESTION[2:])) is None
    assert (tmp_path / "deep" / "folder").stat().st_mode & 0o077 == 0


def test_what_cannot_be_read_counts_as_missing(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path)
    cache.put(QUESTION, ROWS)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        assert cache.get(QUESTION) is None
    path.unlink()
    path.mkdir()
    assert cache.get(QUESTION) is None


def test_a_disk_that_takes_nothing_fails_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = AnswerCache(tmp_path / "file" / "folder")
    cache.put(QUESTION, ROWS)
    assert cache.get(QUESTION) is None
    nothing = AnswerCache(None)
    nothing.put(QUESTION, ROWS)
    assert nothing.get(QUESTION) is None


def test_old_answers_are_deleted_and_other_files_are_not(tmp_path: Path) -> None:
    AnswerCache(tmp_path).put(QUESTION, ROWS)
    names = {"x.part": 2 * 86_400, "old.answer": KEPT + 60, "notes.txt": 9 * KEPT}
    for name, age in names.items():
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, times=(0, time.time() - age))
    assert AnswerCache(tmp_path).get(QUESTION) == ROWS
    assert {one.name for one in tmp_path.iterdir() if one.suffix != ".answer"} == {"notes.txt"}
    assert not (tmp_path / "old.answer").exists()


@pytest.mark.parametrize(
    ("told", "base"), [("/c", "/c"), ("", "/h/.cache"), ("relative", "/h/.cache")]
)
def test_answers_lie_in_the_user_s_cache(
    monkeypatch: pytest.MonkeyPatch, told: str, base: str
) -> None:
    monkeypatch.setenv("HOME", "/h")
    monkeypatch.setenv("XDG_CACHE_HOME", told)
    assert default_folder() == Path(base) / "gpu-pruner" / "backtest"
