"""Lists in pages, and the shapes in which objects are sent.

Imitates chunked lists: all pages of a list come from the state of its first page, the token is
opaque, and it is `Expired` (410) once the server has forgotten that state. Items of built-in kinds
do not carry ``kind`` and ``apiVersion``, those of custom kinds do. Called by `serving`.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import msgspec

from gpu_pruner.sim.failures import bad_request, expired
from gpu_pruner.sim.resources import Resource
from gpu_pruner.sim.selectors import Matcher
from gpu_pruner.sim.store import Item, Store
from gpu_pruner.sim.tree import JsonObject, mapping

_REMEMBERED = 64
"""How many unfinished lists are remembered; a real server forgets them after five minutes."""
PARTIAL = "as=PartialObjectMetadata"


@dataclass(frozen=True, slots=True)
class Page:
    """Some items of a list."""

    items: tuple[Item, ...]
    version: int
    """The state that the whole list shows."""
    token: str = ""
    remaining: int = 0
    is_counted: bool = True
    """Whether the answer tells how many items remain: not where a selector was given."""


class Pages:
    """Cuts lists into pages."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lists: OrderedDict[str, Page] = OrderedDict()
        self._count = 0

    def first(
        self, resource: Resource, namespace: str, *, matcher: Matcher | None, limit: int
    ) -> Page:
        """Return the first page of the newest state; everything where the limit is 0."""
        found = self._store.all(resource, namespace)
        items = tuple(one for one in found if matcher is None or matcher(one.body))
        whole = Page(items, self._store.version, is_counted=matcher is None)
        return self._cut(whole, offset=0, limit=limit)

    def following(self, token: str, limit: int) -> Page:
        """Return the next page.

        Raises:
            ApiFailure: 410 where the list is forgotten, 400 where the token never was one.
        """
        name, _, offset = token.partition(".")
        if not offset.isdecimal():
            raise bad_request("the continue token is not one of this server")
        whole = self._lists.get(name)
        if whole is None:
            raise expired("the continue token is too old; list again from the beginning")
        return self._cut(whole, offset=int(offset), limit=limit, name=name)

    def forget(self) -> None:
        """Forget all unfinished lists: their tokens are Expired."""
        self._lists.clear()

    def _cut(self, whole: Page, *, offset: int, limit: int, name: str = "") -> Page:
        end = offset + limit if limit else len(whole.items)
        remaining = max(0, len(whole.items) - end)
        if not remaining:
            return Page(whole.items[offset:], whole.version)
        if not name:
            self._count += 1
            name = f"list{self._count}"
            self._lists[name] = whole
            while len(self._lists) > _REMEMBERED:
                self._lists.popitem(last=False)
        items = whole.items[offset:end]
        token = f"{name}.{end}"
        return Page(items, whole.version, token, remaining, is_counted=whole.is_counted)


def list_metadata(page: Page) -> JsonObject:
    """Return the metadata of a list: its version and how to go on."""
    metadata: JsonObject = {"resourceVersion": str(page.version)}
    if page.token:
        metadata["continue"] = page.token
        if page.is_counted:
            metadata["remainingItemCount"] = page.remaining
    return metadata


def encode_list(resource: Resource, page: Page, *, partial: bool) -> bytes:
    """Write a page as the body of an answer."""
    metadata = list_metadata(page)
    kind = "PartialObjectMetadataList" if partial else f"{resource.kind}List"
    api_version = "meta.k8s.io/v1" if partial else resource.api_version
    head = msgspec.json.encode({"kind": kind, "apiVersion": api_version, "metadata": metadata})
    items = b",".join(_list_item(one, partial=partial) for one in page.items)
    return head[:-1] + b',"items":[' + items + b"]}"


def _list_item(item: Item, *, partial: bool) -> bytes:
    if partial:
        return encode_object(item, partial=True)
    return item.full if item.resource.custom else item.inner


def encode_object(item: Item, *, partial: bool) -> bytes:
    """Write one object as the body of an answer or of a watch event."""
    if not partial:
        return item.full
    head: JsonObject = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return msgspec.json.encode(head | {"metadata": mapping(item.body, "metadata")})
