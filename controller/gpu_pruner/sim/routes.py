"""The path grammar of the API server, read into what a request is about.

``/api/v1`` or ``/apis/<group>/<version>``, then ``[/namespaces/<ns>]/<plural>[/<name>[/<sub>]]``.
Called by `serving`. Knows no objects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import unquote

from gpu_pruner.sim.failures import bad_request, invalid_option

_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})


@dataclass(frozen=True, slots=True)
class Route:
    """What a path names."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse_route(path: str) -> Route | None:
    """Read a resource path; None where it is not one (discovery, health, nonsense)."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) > 2:  # noqa: PLR2004 - /api/<version>/<plural>
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:  # noqa: PLR2004 - /apis/<group>/<version>/<plural>
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    is_scoped = len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES  # noqa: PLR2004 - as below
    if rest[0] == "namespaces" and is_scoped:
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3 or not all(rest):  # noqa: PLR2004 - <plural>/<name>/<subresource>
        return None
    plural, name, subresource = (*rest, "", "")[:3]
    return Route(group, version, plural, namespace, name, subresource)


class Validation(StrEnum):
    """What becomes of fields that the kind does not have."""

    IGNORE = "Ignore"
    WARN = "Warn"
    STRICT = "Strict"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The query parameters that the server understands."""

    watch: bool = False
    limit: int = 0
    continue_token: str = ""
    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    bookmarks: bool = False
    timeout_seconds: float | None = None
    send_initial_events: bool = False
    dry_run: bool = False
    validation: Validation = Validation.WARN
    field_manager: str = ""


def parse_query(argument: Callable[[str], str]) -> Query:
    """Read query parameters.

    Args:
        argument: returns the last value of a parameter, or the empty string.

    Raises:
        ApiFailure: 400, a number is none; 422, an option has a value that there is not.
    """
    dry_run, validation = argument("dryRun"), argument("fieldValidation")
    if dry_run not in {"", "All"}:
        raise invalid_option("dryRun", dry_run)
    if validation not in {"", *Validation}:
        raise invalid_option("fieldValidation", validation)
    timeout = argument("timeoutSeconds")
    return Query(
        watch=_truth(argument("watch")),
        limit=_whole("limit", argument("limit") or "0"),
        continue_token=argument("continue"),
        label_selector=argument("labelSelector"),
        field_selector=argument("fieldSelector"),
        resource_version=argument("resourceVersion"),
        bookmarks=_truth(argument("allowWatchBookmarks")),
        timeout_seconds=float(_whole("timeoutSeconds", timeout)) if timeout else None,
        send_initial_events=_truth(argument("sendInitialEvents")),
        dry_run=bool(dry_run),
        validation=Validation(validation or Validation.WARN),
        field_manager=argument("fieldManager"),
    )


def _truth(value: str) -> bool:
    return value.lower() in {"true", "1"}


def _whole(name: str, value: str) -> int:
    if not value.isdecimal():
        raise bad_request(f"{name} is not a whole number: {value[:20]!r}")
    return int(value)
