"""Whose workload it is, and who is therefore told.

A ladder; the first rung that names anybody counts, so that a person's own word is never mixed with
a guess: an explicit annotation on the root; on its pods; what the platform wrote on either; the
namespace, by an explicit annotation, then by its Kubeflow Profile; the settings' map of namespaces.
The team's channel is found beside it, in the settings alone. It never raises on what it reads, and
it never decides what happens to the workload. `assemble` calls it once per root.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpu_pruner.model.annotations import (
    NOTEBOOK_CREATOR,
    NOTEBOOK_USERNAME,
    OWNER,
    PROFILE_OWNER,
    SLACK_MENTIONS,
    WORKSPACE_CREATOR,
)
from gpu_pruner.model.audience import (
    Address,
    Audience,
    Contact,
    Directory,
    Person,
    TeamChannel,
)
from gpu_pruner.resolve.addresses import MOST_PEOPLE, addresses
from gpu_pruner.resolve.annotations import Source, shown
from gpu_pruner.resolve.wishes import Surroundings

MAP = "audience.namespaces"
CHANNEL = "audience.channel"
"""Settings, by their names there."""

_EXPLICIT = (OWNER, SLACK_MENTIONS)
_PLATFORM = (NOTEBOOK_USERNAME, NOTEBOOK_CREATOR, WORKSPACE_CREATOR)
_MOST_UNREAD = 3
"""Clauses about what names nobody; more would only repeat the mistake."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What one rung says."""

    people: tuple[Person, ...] = ()
    unread: tuple[str, ...] = ()


def audience_of(around: Surroundings, directory: Directory) -> Audience:
    """Return who is told about a workload.

    Args:
        around: the root, its pods and its namespace, with their annotations.
        directory: what the settings know.

    Returns:
        The same whatever order the pods come in.
    """
    unread: list[str] = []
    people: tuple[Person, ...] = ()
    for rung in _rungs(around, directory):
        unread.extend(rung.unread)
        if rung.people:
            people = rung.people
            break
    return Audience(
        people=people,
        channel=_channel(around.root.ref.namespace, directory),
        unread=tuple(dict.fromkeys(unread))[:_MOST_UNREAD],
    )


def contact_of(namespace: str, directory: Directory) -> tuple[str, Contact] | None:
    """Return the entry of the map that a namespace has, with its key.

    The namespace itself; else the longest key that ends in ``-`` and begins it; else, as in the
    Rust tool, a key that is all of the text before its first dash.
    """
    known = directory.namespaces
    keys = (namespace, *_beginnings(namespace), namespace.partition("-")[0])
    return next(((key, known[key]) for key in keys if key in known), None)


def _beginnings(namespace: str) -> Iterator[str]:
    """Yield what a namespace begins with, up to each of its dashes, the longest first."""
    end = namespace.rfind("-")
    while end >= 0:
        yield namespace[: end + 1]
        end = namespace.rfind("-", 0, end)


def _rungs(around: Surroundings, directory: Directory) -> Iterator[_Found]:
    root, space = around.root_source, around.namespace_source
    pods = tuple(sorted(around.pod_sources, key=lambda one: one.place))
    above = () if root is None else (root,)
    yield _written(above, _EXPLICIT)
    yield _written(pods, _EXPLICIT)
    yield _written(above, _PLATFORM)
    yield _written(pods, _PLATFORM)
    yield _server_users(around)
    if space is not None:
        yield _written((space,), _EXPLICIT)
        yield _written((space,), (PROFILE_OWNER,))
    entry = contact_of(around.root.ref.namespace, directory)
    if entry is not None:
        key, contact = entry
        yield _Found(_people(contact.people, f"{key} in the setting {MAP}"))


def _written(sources: tuple[Source, ...], keys: tuple[str, ...]) -> _Found:
    """Return whom annotations name; a label cannot hold an address."""
    people: list[Person] = []
    unread: list[str] = []
    for source in sources:
        for key in keys:
            text = source.annotations.get(key)
            if text is None:
                continue
            place = f"{key} on {source.place}"
            told = addresses(text)
            people.extend(_people(told.people, place))
            unread.extend(f"{place} says {shown(one)}, which is nobody" for one in told.unread)
            unread.extend(
                f"{place} names the channel {shown(one)}: only the settings do"
                for one in told.channels
            )
            if told.left_out:
                unread.append(f"{place} names {told.left_out} more than {MOST_PEOPLE} people")
    kept = _distinct(people)
    left_out = len({one.address for one in people}) - len(kept)
    if left_out:
        unread.append(f"{left_out} more people are named than the {MOST_PEOPLE} who are told")
    return _Found(kept, tuple(unread))


def _server_users(around: Surroundings) -> _Found:
    """Return whose JupyterHub servers the pods say to be."""
    servers = sorted({pod.server for pod in around.pods if pod.server is not None})
    people: list[Person] = []
    unread: list[str] = []
    for server in servers:
        told = addresses(server.user)
        place = f"the user of the JupyterHub server {shown(server.told)}"
        people.extend(_people(told.people, place))
        if not told.people:
            unread.append(f"{place} has a name that is no address")
    return _Found(_distinct(people), tuple(unread))


def _people(found: tuple[Address, ...], place: str) -> tuple[Person, ...]:
    return tuple(Person(one, place) for one in found)


def _distinct(people: list[Person]) -> tuple[Person, ...]:
    """Return each address once, by where it was found first, and not too many."""
    first: dict[Address, Person] = {}
    for one in people:
        first.setdefault(one.address, one)
    return tuple(first.values())[:MOST_PEOPLE]


def _channel(namespace: str, directory: Directory) -> TeamChannel | None:
    entry = contact_of(namespace, directory)
    if entry is not None and entry[1].channel:
        return TeamChannel(entry[1].channel, f"{entry[0]} in the setting {MAP}")
    return TeamChannel(directory.channel, f"the setting {CHANNEL}") if directory.channel else None
