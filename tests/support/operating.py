"""What an operator is made of: reads and writes, and the objects that it wants there to be.

`support.operators`, `support.knative` and `support.kueue` play controllers with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

import requests
from support.lever_objects import template
from support.own_kind import SERVERS

from gpu_pruner.kube.resources import ALL, Resource
from gpu_pruner.sim.tree import JsonObject, elements, mapping, text, texts

BY_KIND: Mapping[str, Resource] = {one.kind: one for one in (*ALL, SERVERS)}
"""Where the objects of a kind live."""
_AGAIN = {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS}
"""It is gone, or changed, or its kind is so new that the server asks for patience."""
MERGE = {"Content-Type": "application/merge-patch+json"}


class Server:
    """The API server, as seen by somebody with a session."""

    def __init__(self, url: str, session: requests.Session) -> None:
        self._url = url
        self._session = session

    def list(self, resource: Resource, namespace: str) -> list[JsonObject]:
        found: JsonObject = self._ask("GET", resource.path(namespace=namespace)) or {}
        head: JsonObject = {"apiVersion": resource.api_version, "kind": resource.kind}
        return [one | head for one in elements(found, "items")]  # built-in kinds leave it out

    def get(self, kind: str, namespace: str, name: str) -> JsonObject | None:
        return self._ask("GET", BY_KIND[kind].path(namespace=namespace, name=name))

    def create(self, body: JsonObject) -> None:
        kind, namespace = text(body, "kind"), text(body, "metadata", "namespace")
        self._ask("POST", BY_KIND[kind].path(namespace=namespace), body)

    def patch(self, one: JsonObject, body: JsonObject, subresource: str = "") -> None:
        self._ask("PATCH", path_of(one, subresource), body)

    def delete(self, one: JsonObject) -> None:
        self._ask("DELETE", path_of(one), {"propagationPolicy": "Background"})

    def _ask(self, method: str, path: str, body: JsonObject | None = None) -> JsonObject | None:
        headers = MERGE if method == "PATCH" else {}
        answer = self._session.request(
            method, self._url + path, json=body, headers=headers, timeout=30
        )
        if answer.status_code in _AGAIN:
            return None
        assert answer.ok, f"{method} {path}: {answer.text}"
        found: JsonObject = answer.json()
        return found


@dataclass(frozen=True)
class Part:
    """What an operator wants there to be."""

    body: JsonObject
    present: bool = True


def path_of(one: JsonObject, subresource: str = "") -> str:
    meta = mapping(one, "metadata")
    return BY_KIND[text(one, "kind")].path(
        namespace=text(meta, "namespace"), name=text(meta, "name"), subresource=subresource
    )


def owned(owner: JsonObject, kind: str, name: str, spec: JsonObject) -> JsonObject:
    """Return an object that another one controls."""
    meta = mapping(owner, "metadata")
    reference = {
        "apiVersion": text(owner, "apiVersion"),
        "kind": text(owner, "kind"),
        "name": text(meta, "name"),
        "uid": text(meta, "uid"),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": BY_KIND[kind].api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": text(meta, "namespace"),
            "labels": {"app": name},
            "ownerReferences": [reference],
        },
        "spec": spec,
    }


def sized(
    owner: JsonObject, kind: str, name: str, size: int, **metadata: Mapping[str, str]
) -> JsonObject:
    """Return a Deployment, ReplicaSet or StatefulSet; more labels and annotations are its pods'."""
    labels = {"app": name}
    pods = {"metadata": metadata | {"labels": labels | dict(metadata.get("labels", {}))}}
    spec: JsonObject = {"replicas": size, "selector": {"matchLabels": labels}}
    spec["template"] = template() | pods
    if kind == "StatefulSet":
        spec["serviceName"] = name
    return owned(owner, kind, name, spec)


def name_of(one: JsonObject) -> str:
    return text(one, "metadata", "name")


def notes_of(one: JsonObject) -> dict[str, str]:
    return texts(one, "metadata", "annotations")


def condition(kind: str, *, holds: bool) -> JsonObject:
    """Return a condition of a status."""
    return {"type": kind, "status": str(holds), "lastTransitionTime": "2026-01-31T12:00:00Z"}
