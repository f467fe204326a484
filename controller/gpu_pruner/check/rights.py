"""Which rights the controller needs, and what it means that one is missing. Pure.

`needs` is the one list: `deploy/kustomize/base/rbac.yaml` grants exactly these, and a test compares
the two. `check.examination` asks the API server for each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from gpu_pruner.act.levers import LEVERS
from gpu_pruner.check.finding import Area, Finding, Level, counted
from gpu_pruner.kube.custom import CustomKind
from gpu_pruner.kube.resources import (
    CONFIGMAPS,
    EVENTS,
    GOVERNORS,
    GPUWORKLOADS,
    LEASES,
    NAMESPACES,
    NODES,
    OWNERS,
    PODS,
    Resource,
    resource_for,
)
from gpu_pruner.kube.reviews import ACCESS_REVIEWS, TOKEN_REVIEWS, Right
from gpu_pruner.model.rules import Mode
from gpu_pruner.observe.hold import NAME as HOLD
from gpu_pruner.settings.schema import Settings

WATCHED = ("list", "watch")
OWN_ROLE = "ClusterRole gpu-pruner"
LEVERS_ROLE = "ClusterRole gpu-pruner-levers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A right, and when it is needed."""

    right: Right
    role: str
    """Where the rule belongs, as we ship it."""
    without: str
    """What does not work without it, to stand behind "so"."""
    scale_down_only: bool = False
    """A dry run does without."""


def needs(settings: Settings, *, namespace: str) -> tuple[Need, ...]:
    """Return every right that these settings need.

    Args:
        settings: for the kinds that may be paused, and the Lease.
        namespace: the controller's own.
    """
    return (
        *_seeing(settings),
        *_remembering(),
        *_pausing(settings),
        *_own(settings, namespace=namespace),
    )


def _seeing(settings: Settings) -> Iterator[Need]:
    for resource in (PODS, NODES, NAMESPACES):
        without = "nothing can be judged"
        yield from _all(resource, WATCHED, without)
    yield from _all(NAMESPACES, ("get",), "no pause can be checked for exemptions", later=True)
    for resource in (*OWNERS, *(CustomKind(one).resource for one in settings.custom_levers)):
        without = f"what a {resource.kind} owns is nobody's, and is never paused"
        yield from _all(resource, WATCHED, without)
    for resource in GOVERNORS:
        without = f"the size that a {resource.kind} sets is not seen"
        yield from _all(resource, WATCHED, without)


def _remembering() -> Iterator[Need]:
    without = "no warning can be remembered"
    yield from _all(GPUWORKLOADS, ("get", *WATCHED, "create", "patch"), without)
    status = Right(verb="patch", resource=GPUWORKLOADS, subresource="status")
    yield Need(right=status, role=OWN_ROLE, without=without)
    yield from _all(EVENTS, ("create", "patch"), "no owner can be told")
    for resource in (TOKEN_REVIEWS, ACCESS_REVIEWS):
        yield from _all(resource, ("create",), "nobody can ask for a keep over HTTP")


def _pausing(settings: Settings) -> Iterator[Need]:
    paused = settings.enabled_kinds - settings.warn_only_kinds
    for lever in LEVERS:
        resource = resource_for(lever.group, lever.kind)
        if resource is not None and lever.kind in paused:
            yield from _pause(resource, "get", "patch")
    for one in settings.custom_levers:
        yield from _pause(CustomKind(one).resource, "get", "patch")
    for resource in GOVERNORS:
        yield from _pause(resource, "patch")


def _pause(resource: Resource, *verbs: str) -> Iterator[Need]:
    without = f"no {resource.kind} can be paused or restored"
    for verb in verbs:
        role = OWN_ROLE if verb == "get" else LEVERS_ROLE
        right = Right(verb=verb, resource=resource)
        yield Need(right=right, role=role, without=without, scale_down_only=True)


def _own(settings: Settings, *, namespace: str) -> Iterator[Need]:
    role = f"Role gpu-pruner in namespace {namespace}"
    lease = "no replica may act"
    create = Right(verb="create", resource=LEASES, namespace=namespace)
    yield Need(right=create, role=role, without=lease)
    for verb in ("get", "patch"):
        right = Right(verb=verb, resource=LEASES, namespace=namespace, name=settings.lease.name)
        yield Need(right=right, role=role, without=lease)
    hold = Right(verb="get", resource=CONFIGMAPS, namespace=namespace, name=HOLD)
    yield Need(right=hold, role=role, without="everything is held, because nobody sees the switch")


def _all(
    resource: Resource, verbs: tuple[str, ...], without: str, *, later: bool = False
) -> Iterator[Need]:
    for verb in verbs:
        right = Right(verb=verb, resource=resource)
        yield Need(right=right, role=OWN_ROLE, without=without, scale_down_only=later)


def findings(
    answers: Mapping[Need, bool],
    *,
    mode: Mode,
    who: str = "",
    unasked: Collection[str] = (),
) -> Iterator[Finding]:
    """Say which rights are missing, one finding for each resource, with the rule to add.

    Args:
        answers: need to whether the API server says yes.
        mode: what the controller is to do.
        who: whose rights these are, as the API server names it; empty: nobody tells.
        unasked: why questions could not be asked, in sentences.
    """
    missing: dict[tuple[str, str, str, str, bool], list[Need]] = {}
    for need in (one for one, granted in answers.items() if not granted):
        later = need.scale_down_only and mode is Mode.DRY_RUN
        right = need.right
        key = (need.role, right.resource.group, right.thing, right.name, later)
        missing.setdefault(key, []).append(need)
    for (*_, later), group in missing.items():
        yield _missing(group, later=later, who=who)
    for why in unasked:
        fix = "look yourself: kubectl auth can-i --list"
        yield _finding(Level.WARN, f"Rights could not be asked for: {why}", fix)
    if answers and not missing:
        told = f"All {counted(len(answers), 'right')} that are needed are granted"
        yield _finding(Level.OK, f"{told} to {who}" if who else told)


def _missing(group: list[Need], *, later: bool, who: str) -> Finding:
    first = group[0]
    right = first.right
    verbs = [one.right.verb for one in group]
    who = who or "our account"
    where = f" in namespace {right.namespace}" if right.namespace else ""
    thing = f"{right.thing}.{right.resource.group}" if right.resource.group else right.thing
    named = f" {right.name}" if right.name else ""
    when = " (needed for scale-down only)" if later else ""
    sentence = f"{who} may not {' and '.join(verbs)} {thing}{named}{where}, so {first.without}"
    return _finding(Level.WARN if later else Level.FAIL, sentence + when, _rule(first, verbs))


def _rule(need: Need, verbs: list[str]) -> str:
    right = need.right
    names = f"\n  resourceNames: [{right.name}]" if right.name else ""
    return (
        f"add to {need.role}:\n"
        f'- apiGroups: ["{right.resource.group}"]\n'
        f"  resources: [{right.thing}]{names}\n"
        f"  verbs: [{', '.join(verbs)}]"
    )


def _finding(level: Level, sentence: str, fix: str = "") -> Finding:
    return Finding(level=level, area=Area.RIGHTS, sentence=sentence, fix=fix)
