"""Label and field selectors of list and watch requests.

Imitates the API server: the full grammar of label selectors; of field selectors only the fields
that the kind supports, and 400 for the others, which is what surprises clients. Called by `api`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from gpu_pruner.sim.failures import bad_request
from gpu_pruner.sim.resources import Resource
from gpu_pruner.sim.tree import JsonObject, child, texts

Matcher: TypeAlias = Callable[[JsonObject], bool]

_COMMON_FIELDS = frozenset({"metadata.name", "metadata.namespace"})
_FIELDS = {
    "pods": frozenset({"spec.nodeName", "spec.restartPolicy", "spec.schedulerName"})
    | frozenset({"spec.serviceAccountName", "status.phase", "status.podIP"}),
    "nodes": frozenset({"spec.unschedulable"}),
    "namespaces": frozenset({"status.phase"}),
    "replicasets": frozenset({"status.replicas"}),
    "events": frozenset(
        {"type", "reason", "reportingComponent", "source"}
        | {
            f"involvedObject.{field}"
            for field in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion")
        }
    ),
}
_TERM = re.compile(r"(?:[^,(]|\([^)]*\))+")
_SET = re.compile(r"^(?P<key>\S+)\s+(?P<how>in|notin)\s*\((?P<values>[^)]*)\)$")
_COMPARE = re.compile(r"^(?P<key>[^=!\s]+)\s*(?P<how>==|=|!=)\s*(?P<value>[^=!\s]*)$")
_EXISTS = re.compile(r"^(?P<absent>!?)\s*(?P<key>[^=!\s()]+)$")


def label_matcher(selector: str) -> Matcher:
    """Read a label selector: ``a=b``, ``a!=b``, ``a in (b,c)``, ``a notin (b)``, ``a``, ``!a``.

    Raises:
        ApiFailure: 400, the selector cannot be read.
    """
    terms = [_label_term(one.strip()) for one in _TERM.findall(selector) if one.strip()]
    return lambda body: all(term(texts(body, "metadata", "labels")) for term in terms)


def _label_term(term: str) -> Callable[[dict[str, str]], bool]:
    if found := _SET.match(term):
        key = found["key"]
        values = frozenset(one.strip() for one in found["values"].split(","))
        if found["how"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if found := _COMPARE.match(term):
        key, value = found["key"], found["value"]
        if found["how"] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if found := _EXISTS.match(term):
        key, wanted = found["key"], not found["absent"]
        return lambda labels: (key in labels) is wanted
    raise bad_request(f"unable to parse the label selector {term[:80]!r}")


def field_matcher(selector: str, resource: Resource) -> Matcher:
    """Read a field selector: ``path=value`` and ``path!=value``, joined by commas.

    Raises:
        ApiFailure: 400, unreadable, or a field by which this kind cannot be selected.
    """
    supported = _COMMON_FIELDS | _FIELDS.get(resource.plural, frozenset())
    tests: list[Matcher] = []
    for term in filter(None, (one.strip() for one in selector.split(","))):
        found = _COMPARE.match(term)
        if found is None:
            raise bad_request(f"unable to parse the field selector {term[:80]!r}")
        if found["key"] not in supported:
            raise bad_request(f"field label not supported: {found['key'][:80]}")
        tests.append(_field_test(found["key"], found["value"], equal=found["how"] != "!="))
    return lambda body: all(test(body) for test in tests)


def _field_test(path: str, value: str, *, equal: bool) -> Matcher:
    keys = tuple(path.split("."))

    def test(body: JsonObject) -> bool:
        found = child(body, *keys)
        return (("" if found is None else str(found)) == value) is equal

    return test
