"""The Rust tool's arguments and variables, found in a manifest or a command line.

Reads what `kubectl get -o yaml` and repositories hold: Deployments, CronJobs, Jobs, Pods and lists
of them, several in a file. `migrate` turns what is found into settings.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import yaml

from gpu_pruner.errors import ConfigurationError

PROGRAM = "gpu-pruner"
_SHELL = ("sh", "-c")
_PATHS: tuple[tuple[str, ...], ...] = (
    ("spec", "template", "spec"),
    ("spec", "jobTemplate", "spec", "template", "spec"),
    ("spec",),
)
"""Where kinds of objects keep their pod."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """How the program is called."""

    arguments: tuple[str, ...]
    variables: Mapping[str, str | None] = field(default_factory=dict)
    """Name to value; None where it comes from a Secret, a ConfigMap or a field."""


def read_invocation(text: str) -> Invocation:
    """Find how a manifest, or a command line, calls the program.

    Raises:
        ConfigurationError: it is neither, or calls it nowhere, or more than once.
    """
    try:
        documents = list(yaml.safe_load_all(text))
    except (yaml.YAMLError, RecursionError, ValueError):  # ValueError: a date that is none
        documents = []
    objects = [one for one in documents if isinstance(one, dict)]
    if not objects:
        return _command_line(text)
    found = [one for document in objects for one in _invocations(document)]
    if len(found) != 1:
        many = f"{len(found)} containers run" if found else "no container runs"
        raise ConfigurationError(f"{many} {PROGRAM} in this manifest; give one that has one")
    return found[0]


def _command_line(text: str) -> Invocation:
    try:
        words = shlex.split(text.replace("\\\n", " "), comments=True)
    except ValueError as error:
        raise ConfigurationError(f"is neither a manifest nor a command line: {error}") from None
    variables: dict[str, str | None] = {}
    while words and "=" in words[0] and not words[0].startswith("-"):
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    if not words:
        raise ConfigurationError("is neither a manifest nor a command line")
    return Invocation(_without_program(words), variables)


def _without_program(words: list[str]) -> tuple[str, ...]:
    """Return what stands behind the program's name; all where it is the image's entry point."""
    names = (number for number, word in enumerate(words) if _is_program(word))
    rest = words[next(names, -1) + 1 :]
    while rest and _is_program(rest[0]):
        rest = rest[1:]
    return tuple(rest)


def _is_program(word: str) -> bool:
    return word.rpartition("/")[2] == PROGRAM


def _invocations(document: Mapping[str, object]) -> Iterator[Invocation]:
    items = document.get("items")
    if isinstance(items, list):
        for item in items:
            if isinstance(item, dict):
                yield from _invocations(item)
        return
    for path in _PATHS:
        pod = _at(document, path)
        containers = pod.get("containers") if isinstance(pod, dict) else None
        for container in containers if isinstance(containers, list) else ():
            if isinstance(container, dict) and _is_ours(container):
                yield _of_container(container)


def _at(value: object, path: tuple[str, ...]) -> object:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _words(container: Mapping[str, object]) -> list[str]:
    parts = (container.get("command"), container.get("args"))
    words = [str(word) for part in parts if isinstance(part, list) for word in part]
    if len(words) >= len(_SHELL) and words[0].endswith(_SHELL[0]) and words[1] == _SHELL[1]:
        return shlex.split(" ".join(words[2:]).replace("\\\n", " "))
    return words


def _is_ours(container: Mapping[str, object]) -> bool:
    named = any(_is_program(word) for word in _words(container))
    return named or f"/{PROGRAM}" in f"/{container.get('image', '')}"


def _of_container(container: Mapping[str, object]) -> Invocation:
    variables: dict[str, str | None] = {}
    listed = container.get("env")
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, dict) and isinstance(name := one.get("name"), str):
            value = one.get("value")
            variables[name] = None if value is None else str(value)
    return Invocation(_without_program(_words(container)), variables)
