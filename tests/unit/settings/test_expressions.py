from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as some

from gpu_pruner.settings.expressions import LONGEST, Expression, Path

BODY = {
    "metadata": {"annotations": {"mode": "auto"}},
    "spec": {"replicas": 2, "stopped": False, "size": {"workers": 3}},
    "status": {"phase": "Running", "ready": 2, "note": None, "list": [1]},
}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ('status.phase == "Running"', True),
        ("status.phase=='Running'", None),
        ('status.phase != "Running"', False),
        ("status.ready >= spec.replicas", True),
        ("status.ready > spec.replicas", False),
        ("spec.size.workers == 3", True),
        ("spec.stopped == false", True),
        ("spec.stopped == 0", False),
        ("spec.replicas == true", False),
        ('status.phase == "Running" && status.ready < 2', False),
        ('status.phase == "Running" && status.ready <= 2', True),
        ("status.absent == 0", False),
        ("status.absent != 0", True),
        ("status.absent >= 0", False),
        ("status.absent == status.absent", False),
        ("status.note == 0", False),
        ("status.list == 1", False),
        ('status.phase > "A"', False),
        ('metadata.annotations.mode == "auto"', True),
        ("status.ready >= NaN", False),
    ],
)
def test_what_an_expression_says_of_an_object(text: str, *, holds: bool | None) -> None:
    if holds is None:
        with pytest.raises(ValueError, match="neither a field nor"):
            Expression.parse(text)
    else:
        assert Expression.parse(text).holds(BODY) is holds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "status.phase",
        "status.phase = 1",
        "phase == 1",
        "status == 1",
        "status.phase == ",
        "status.phase == [1]",
        "status.phase == null",
        "status.items[0] == 1",
        "status.phase == 1 || status.ready == 1",
        "status.phase == 1 &&",
        "x" * (LONGEST + 1),
    ],
)
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="."):
        Expression.parse(text)


@given(some.text(max_size=60))
def test_random_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        Expression.parse(text).holds(BODY)


@given(some.recursive(some.none() | some.integers() | some.text(), some.lists))
def test_any_object_can_be_asked(body: object) -> None:
    assert not Expression.parse("status.ready >= 1").holds(body)
    assert not Expression.parse("status.ready >= 1").holds({"status": body})


def test_a_path_begins_with_a_part_of_the_object() -> None:
    assert Path.parse("spec.size.workers").keys == ("spec", "size", "workers")
    with pytest.raises(ValueError, match=r"spec\.replicas"):
        Path.parse("replicas")
