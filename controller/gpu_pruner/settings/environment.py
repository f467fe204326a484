"""Settings from environment variables: ``GPU_PRUNER_`` and the setting's path in capitals.

``budget.per_hour`` is ``GPU_PRUNER_BUDGET_PER_HOUR``. Lists are written with commas, names with
values as in YAML: ``{X-Scope-OrgID: team-a}``. A variable that is empty says nothing. Every other
variable of ours is an error, but not those that Kubernetes makes for a Service named gpu-pruner.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.settings.document import Keys, parse_value
from gpu_pruner.settings.fields import all_settings, is_list, is_mapping, is_secret
from gpu_pruner.settings.layers import Layer, Origin, Place, Written, flat
from gpu_pruner.settings.problems import Problem, nearest
from gpu_pruner.settings.schema import Settings

PREFIX = "GPU_PRUNER_"
CONFIG = "GPU_PRUNER_CONFIG"
"""The settings file, where `--config` does not name it."""

ENDS_WITH_STDIN = "GPU_PRUNER_ENDS_WITH_STDIN"
"""Not empty: `run` ends in an orderly way when its standard input does. The demo sets it for the
controller that it starts, and holds the other end, so that the two end together however it ends."""

OTHERS = frozenset({CONFIG, ENDS_WITH_STDIN, "GPU_PRUNER_CLOCK", "GPU_PRUNER_WEB_DIST"})
"""Variables with our prefix that are no settings: those of the demo for the controller that it
starts, and the Rust tool's web root."""

OF_THE_RUST_TOOL: Mapping[str, Keys] = {
    "PROMETHEUS_TOKEN": ("prometheus", "token"),
    "POD_NAME": ("lease", "identity"),
    "SLACK_NAMESPACE_MENTIONS": ("audience", "namespaces"),
}
"""Its variables that are settings of ours; ours by their own name win."""

_LINKED = re.compile(r"GPU_PRUNER(_[A-Z0-9_]+)?_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)")
_LINKED_PORT = re.compile(r"GPU_PRUNER(_[A-Z0-9_]+)?_PORT_[0-9]+_(TCP|UDP|SCTP)(_[A-Z]+)?")
_LINK = re.compile(r"(tcp|udp|sctp)://")
"""Kubernetes' service links: https://kubernetes.io/docs/concepts/services-networking/service/."""


def variable_of(keys: Keys) -> str:
    """Return the variable of a setting."""
    return PREFIX + "_".join(keys).upper()


def without_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that are not ours, for a child that is to have settings of its own."""
    return {
        name: text
        for name, text in environ.items()
        if not name.startswith(PREFIX) and name not in OF_THE_RUST_TOOL
    }


def layer_of_environment(environ: Mapping[str, str]) -> tuple[Layer, list[Problem]]:
    """Return what the variables say, and what is wrong with them."""
    known = {variable_of(keys): keys for keys in all_settings(Settings)}
    found: dict[Keys, Written] = {}
    problems: list[Problem] = []
    for name, keys in OF_THE_RUST_TOOL.items():
        text = environ.get(name, "").strip()
        if text and is_mapping(all_settings(Settings)[keys]):
            try:
                found |= layer_of_names(text, keys, Place(Origin.VARIABLE, name))
            except ConfigurationError as error:
                problems.append(Problem(name, "", str(error)))
        elif text:
            found[keys] = Written(environ[name], Place(Origin.VARIABLE, name, for_all=True))
    for name, text in sorted(environ.items()):
        if not name.startswith(PREFIX) or name in OTHERS or _is_link(name, text):
            continue
        if name not in known:
            problems.append(Problem(name, "", f"is no setting{nearest(name, known)}"))
        elif text.strip():
            try:
                found |= _read(name, known[name], text)
            except ConfigurationError as error:
                problems.append(Problem(name, "", str(error)))
    return found, problems


def _is_link(name: str, text: str) -> bool:
    """Return whether Kubernetes made a variable for a Service whose name begins as ours does."""
    if _LINKED.fullmatch(name) or _LINKED_PORT.fullmatch(name):
        return True
    return name.endswith("_PORT") and _LINK.match(text) is not None


def _read(name: str, keys: Keys, text: str) -> Layer:
    """Read one variable.

    Raises:
        ConfigurationError: a list or names with values that are not written as such.
    """
    field, place = all_settings(Settings)[keys], Place(Origin.VARIABLE, name)
    if is_mapping(field):
        return layer_of_names(text, keys, place, secret=is_secret(field))
    if is_list(field):
        if text.lstrip().startswith(("[", "{")):
            return {keys: Written(_structure(text, secret=is_secret(field)), place)}
        items = [item.strip() for item in text.split(",")]
        return {keys: Written([item for item in items if item], place)}
    return {keys: Written(text.strip(), place)}


def layer_of_names(text: str, keys: Keys, place: Place, *, secret: bool = False) -> Layer:
    """Return names with values, as YAML or JSON, each a value at its own path.

    Raises:
        ConfigurationError: it is something else.
    """
    values = _structure(text, secret=secret)
    if not isinstance(values, dict):
        raise ConfigurationError("must be names with values, as in {name: value}")
    return {path: Written(value, place) for path, value in flat(values, keys)}


def _structure(text: str, *, secret: bool) -> object:
    try:
        return parse_value(text, name="its text")
    except ConfigurationError:
        if secret:
            raise ConfigurationError("is not YAML") from None
        raise
