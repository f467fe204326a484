"""Objects as rows: what ``kubectl get`` prints.

Imitates server-side printing: the columns of a CRD's ``additionalPrinterColumns``, a few of the
built-in kinds, ages relative to the *simulated* present, and ``<invalid>`` for the age of a moment
that has not come, as a real server prints it. Called by `api`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from gpu_pruner.model.units import HOUR, MINUTE, Seconds, Timestamp, parse_rfc3339
from gpu_pruner.sim.resources import (
    DEPLOYMENTS,
    EVENTS,
    NAMESPACES,
    PODS,
    STATEFULSETS,
    Column,
    Resource,
)
from gpu_pruner.sim.store import Item
from gpu_pruner.sim.tree import JsonObject, child, mapping

TABLE = "as=Table"
_STEP = re.compile(r"\.((?:\\.|[^.\[\\])+)")
_AGE = Column(name="Age", json_path=".metadata.creationTimestamp", type="date")
_DAY = 24 * HOUR


def _columns(**paths: str) -> tuple[Column, ...]:
    return (*(Column(name=name, json_path=path) for name, path in paths.items()), _AGE)


_BUILT_IN: Mapping[tuple[str, str], tuple[Column, ...]] = {
    PODS.key: _columns(Status=".status.phase", Node=".spec.nodeName"),
    NAMESPACES.key: _columns(Status=".status.phase"),
    DEPLOYMENTS.key: _columns(Desired=".spec.replicas", Ready=".status.readyReplicas"),
    STATEFULSETS.key: _columns(Desired=".spec.replicas", Ready=".status.readyReplicas"),
    EVENTS.key: _columns(Type=".type", Reason=".reason", Message=".message"),
}


def encode_table(
    resource: Resource, items: Sequence[Item], *, metadata: JsonObject, now: Timestamp
) -> bytes:
    """Write objects as a ``meta.k8s.io/v1`` Table."""
    columns = resource.columns or _BUILT_IN.get(resource.key, (_AGE,))
    name: JsonObject = {"name": "Name", "type": "string", "format": "name", "priority": 0}
    definitions = [
        name,
        *(
            {"name": one.name, "type": one.type, "format": "", "priority": one.priority}
            for one in columns
        ),
    ]
    return msgspec.json.encode(
        {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "columnDefinitions": [one | {"description": ""} for one in definitions],
            "rows": [_row(item, columns, now=now) for item in items],
        }
    )


def _row(item: Item, columns: Sequence[Column], *, now: Timestamp) -> JsonObject:
    partial: JsonObject = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return {
        "cells": [item.name, *(_cell(item.body, column, now=now) for column in columns)],
        "object": partial | {"metadata": mapping(item.body, "metadata")},
    }


def _cell(body: JsonObject, column: Column, *, now: Timestamp) -> object:
    keys = [one.replace("\\.", ".") for one in _STEP.findall(column.json_path)]
    value = child(body, *keys)
    if column.type == "date" and isinstance(value, str):
        try:
            return age(now - parse_rfc3339(value))
        except ValueError:
            return "<invalid>"
    return value


def age(seconds: Seconds) -> str:
    """Write a length of time as kubectl's columns do, coarser the longer it is."""
    if seconds < 0:
        return "<invalid>" if seconds <= -2 else "0s"  # noqa: PLR2004 - skew that kubectl forgives
    whole = int(seconds)
    for limit, form in (
        (2 * MINUTE, f"{whole}s"),
        (10 * MINUTE, f"{whole // 60}m{whole % 60}s"),
        (3 * HOUR, f"{whole // 60}m"),
        (8 * HOUR, f"{whole // 3600}h{whole % 3600 // 60}m"),
        (2 * _DAY, f"{whole // 3600}h"),
    ):
        if whole < limit:
            return form
    return f"{whole // 86400}d"
