"""Who wrote which field last: ``metadata.managedFields``.

Imitates the API server: whoever changes a field takes it over, whoever writes what is there already
takes nothing, and each subresource is a manager of its own. Lists count as one field. Writes of the
simulated controllers are nobody's. Called by `writes`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from gpu_pruner.sim.tree import JsonObject, child, elements, mapping, text

_Path: TypeAlias = tuple[str, ...]
_Fields: TypeAlias = frozenset[_Path]

_HEAD = frozenset({"kind", "apiVersion"})
_UNTRACKED = frozenset(
    {
        *("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation"),
        *("deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink"),
    }
)
_MISSING = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Manager:
    """A field manager, as far as two of them differ."""

    name: str
    api_version: str
    subresource: str = ""


def managed_fields(
    before: JsonObject, after: JsonObject, *, manager: Manager, moment: str
) -> list[JsonObject]:
    """Return the list of field managers after a write.

    Args:
        before: the stored object with its list; empty for a create.
        after: what will be stored.
        manager: who writes.
        moment: when, RFC 3339.
    """
    entries = elements(before, "metadata", "managedFields")
    changed, gone = _difference(before, after)
    if not changed and not gone:
        return entries
    kept: list[JsonObject] = []
    mine = changed
    for entry in entries:
        fields = _decoded(mapping(entry, "fieldsV1"))
        if _is_of(entry, manager):
            mine |= fields - gone
        elif left := fields - changed - gone:
            kept.append(entry | {"fieldsV1": _encoded(left)} if left != fields else entry)
    if not mine:
        return kept
    entry = {
        "manager": manager.name,
        "operation": "Update",
        "apiVersion": manager.api_version,
        "time": moment,
        "fieldsType": "FieldsV1",
        "fieldsV1": _encoded(mine),
    }
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return [*kept, entry]


def _is_of(entry: JsonObject, manager: Manager) -> bool:
    stated = [text(entry, key) for key in ("manager", "apiVersion", "subresource", "operation")]
    return stated == [manager.name, manager.api_version, manager.subresource, "Update"]


def _difference(before: JsonObject, after: JsonObject) -> tuple[_Fields, _Fields]:
    """Return the fields whose value is new, and those that are there no more."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    changed = frozenset(path for path, value in new.items() if old.get(path, _MISSING) != value)
    return changed, frozenset(old.keys() - new.keys())


def _leaves(body: JsonObject) -> Iterable[tuple[_Path, object]]:
    for key, value in body.items():
        if key == "metadata":
            tracked = {k: v for k, v in mapping(body, key).items() if k not in _UNTRACKED}
            yield from _below((key,), tracked)
        elif key not in _HEAD:
            yield from _below((key,), value)


def _below(path: _Path, value: object) -> Iterable[tuple[_Path, object]]:
    if isinstance(value, dict) and value:
        for key, one in value.items():
            yield from _below((*path, key), one)
    elif len(path) > 1 or not isinstance(value, dict):
        yield path, value


def _encoded(fields: Iterable[_Path]) -> JsonObject:
    root: JsonObject = {}
    for path in sorted(fields):
        node = root
        for step in path:
            below = node.setdefault(f"f:{step}", {})
            node = below if isinstance(below, dict) else {}
    return root


def _decoded(fields: JsonObject, path: _Path = ()) -> _Fields:
    if not fields:
        return frozenset({path}) if path else frozenset()
    found: set[_Path] = set()
    for key in fields:
        found |= _decoded(mapping(child(fields, key)), (*path, key.removeprefix("f:")))
    return frozenset(found)
