"""REF: how people name a workload, a node or a GPU on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

from gpu_pruner.act.levers import LEVERS
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.loop.explaining import Question
from gpu_pruner.model import jupyterhub
from gpu_pruner.model.foreign import quoted
from gpu_pruner.model.workload import RootRef
from gpu_pruner.settings.levers import CustomLever

_GROUPS = {
    "pod": ("", "Pod"),
    **{one.kind.lower(): (one.group, one.kind) for one in LEVERS},
    jupyterhub.KIND.lower(): (jupyterhub.GROUP, jupyterhub.KIND),
}
_SHORT = {
    "deploy": "deployment",
    "deployments": "deployment",
    "sts": "statefulset",
    "statefulsets": "statefulset",
    "notebooks": "notebook",
    "isvc": "inferenceservice",
    "lws": "leaderworkerset",
    "rs": "replicaset",
    "po": "pod",
    "pods": "pod",
}

_LONGEST_NAME = 253
"""Characters; source: Kubernetes' rules for names, of which this is the longest."""
_SHOWN = 80


def parse_reference(text: str, *, custom: Iterable[CustomLever] = ()) -> RootRef:
    """Read ``kind/namespace/name``.

    Args:
        text: for example ``deployment/team-a/train`` or ``pod/team-a/train-0``.
        custom: levers of the settings, whose kinds can be named, too.

    Returns:
        The reference, without uid.

    Raises:
        ConfigurationError: it has another shape, an unknown kind, or a part that is no name.
    """
    parts = text.split("/")
    if len(parts) != 3 or not all(parts):  # noqa: PLR2004 - kind, namespace, name
        raise ConfigurationError(
            f"{_shown(text)} is not kind/namespace/name, for example deployment/team-a/train"
        )
    _all_names(text, parts)
    kind, namespace, name = parts
    groups = _GROUPS | {one.kind.lower(): (one.group, one.kind) for one in custom}
    key = _SHORT.get(kind.lower(), kind.lower())
    if key not in groups:
        raise ConfigurationError(f"unknown kind {_shown(kind)}; known: {', '.join(groups)}")
    group, proper = groups[key]
    return RootRef(kind=proper, namespace=namespace, name=name, group=group)


def _all_names(text: str, parts: Iterable[str]) -> None:
    """Check what was written for parts that nothing can be called, and that would lead elsewhere.

    Raises:
        ConfigurationError: one is ``.`` or ``..``, too long, or has a blank, a control character or
            a byte that is no text.
    """
    for part in parts:
        if part in {".", ".."} or len(part) > _LONGEST_NAME:
            raise ConfigurationError(f"REF {_shown(text)}: {_shown(part)} is not a name")
        if not part.isprintable() or " " in part:
            raise ConfigurationError(
                f"REF {_shown(text)}: {_shown(part)} is not a name: it has a character that no "
                "name can have"
            )


def _shown(text: str) -> str:
    """Return what was written, quoted, short and printable."""
    line = quoted(text)
    return repr(line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…")


_SHAPES = (
    "kind/namespace/name, pod/namespace/name, node/NAME or gpu/UUID, "
    "for example deployment/team-a/train"
)


def parse_question(text: str, *, custom: Iterable[CustomLever] = ()) -> Question:
    """Read what `explain` is asked about: a workload, a pod, a node or a GPU.

    Args:
        text: for example ``notebook/team-a/notebook-1``, ``node/node-a`` or ``gpu/GPU-…``, of
            which a slice stands behind one more slash.
        custom: as for `parse_reference`.

    Raises:
        ConfigurationError: it has another shape, or a part that is no name.
    """
    sort, _, rest = text.partition("/")
    if rest and "" not in (parts := text.split("/")):
        _all_names(text, parts)
    if sort.lower() in {"node", "nodes"} and rest and "/" not in rest:
        return Question(node=rest)
    if sort.lower() in {"gpu", "gpus"} and rest and rest.count("/") <= 1:
        return Question(device=rest)
    kind, _, place = text.partition("/")
    namespace, _, name = place.partition("/")
    if not (kind and namespace and name) or "/" in name:
        raise ConfigurationError(f"{_shown(text)} is not {_SHAPES}")
    try:
        return Question(root=parse_reference(text, custom=custom))
    except ConfigurationError:  # pods can belong to kinds that nobody here can pause
        return Question(root=RootRef(kind=kind, namespace=namespace, name=name))


_NEAR = 0.65
"""Likeness, 0-1, from which on a name is worth showing to somebody who mistyped."""


def near(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return up to three names that are most like what was written, the likest first.

    Args:
        name: as written.
        known: everything that exists.
    """
    sort = name.partition("/")[0]
    alike = [one for one in known if _alone(one) == _alone(f"{sort}/")]
    found = sorted((-_likeness(one, name, last=True), -_likeness(one, name), one) for one in alike)
    return tuple(one for likeness, _, one in found if -likeness >= _NEAR)[:3]


def _alone(name: str) -> str:
    """Return the sort of a name that is only like others of its sort: a node's, or a GPU's."""
    sort = name.partition("/")[0]
    return sort if sort in {"node", "gpu"} else ""


def _likeness(one: str, other: str, *, last: bool = False) -> float:
    """Return how like two names are, 0-1, as a whole or by what stands behind the last slash."""
    if last:
        one, other = one.rpartition("/")[2], other.rpartition("/")[2]
    return SequenceMatcher(a=other, b=one, autojunk=False).ratio()
