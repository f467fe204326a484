from __future__ import annotations

import asyncio
import inspect
import re

import pytest

from gpu_pruner import errors
from gpu_pruner.errors import (
    ClusterError,
    ConfigurationError,
    PrunerError,
    Throttled,
    out_of_groups,
)

CLASSES = {
    name: one
    for name, one in inspect.getmembers(errors, inspect.isclass)
    if one.__module__ == errors.__name__
}


def drawn() -> dict[str, str | None]:
    """Return error to parent, as the tree in the module's docstring shows it."""
    parents: dict[str, str | None] = {}
    path: list[str] = []
    for indent, name in re.findall(r"^ {4}([ │├└─]*)(\w+)", errors.__doc__ or "", re.MULTILINE):
        depth = len(indent) // 4
        path = [*path[:depth], name]
        parents[name] = path[-2] if depth else None
    return parents


def test_the_tree_in_the_docstring_is_the_tree_in_the_code() -> None:
    defined = {name: one.__bases__[0].__name__ for name, one in CLASSES.items()}
    defined["PrunerError"] = None
    assert drawn() == defined


@pytest.mark.parametrize("name", CLASSES)
def test_one_class_catches_everything_that_is_raised_on_purpose(name: str) -> None:
    assert issubclass(CLASSES[name], PrunerError)


def test_a_configuration_error_names_the_thing() -> None:
    assert str(ConfigurationError("is not a URL", path="prometheus.url")) == (
        "prometheus.url: is not a URL"
    )
    assert str(ConfigurationError("give a source")) == "give a source"


def test_a_cluster_error_keeps_the_status() -> None:
    assert ClusterError("no answer").status is None
    assert ClusterError("refused", status=403).status == 403


def test_being_throttled_says_how_long_to_wait() -> None:
    throttled = Throttled("slow down", retry_after_seconds=7.0)
    assert (throttled.status, throttled.retry_after_seconds) == (429, 7.0)


async def test_an_error_of_ours_leaves_a_task_group_as_itself() -> None:
    async def work() -> None:
        with out_of_groups():
            async with asyncio.TaskGroup() as group:
                group.create_task(asyncio.Event().wait())
                raise ClusterError("away")

    with pytest.raises(ClusterError, match="away"):
        await work()


def test_what_a_person_has_to_change_is_told_before_anything_else() -> None:
    inner = ExceptionGroup("inner", [ConfigurationError("wrong")])
    with pytest.raises(ConfigurationError, match="wrong"), out_of_groups():
        raise ExceptionGroup("outer", [ClusterError("away"), inner])


def test_a_bug_is_not_hidden_behind_an_error_of_ours() -> None:
    with pytest.raises(ExceptionGroup) as caught, out_of_groups():
        raise ExceptionGroup("both", [ClusterError("away"), ValueError("a bug")])
    assert caught.group_contains(ValueError)
