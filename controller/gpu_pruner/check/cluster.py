"""What is right and wrong with the API server, our kinds and our guard rails there. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from gpu_pruner.check.finding import Area, Finding, Level, counted, listed
from gpu_pruner.check.rights import Need
from gpu_pruner.decide.breaker import GREATEST_SKEW_SECONDS
from gpu_pruner.kube.resources import EVENTS, GOVERNORS, GPUWORKLOADS, OWNERS, Resource
from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.model.orders import EVENT
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.snapshot import ALL_HELD, SCREEN_FAILED, Breaker
from gpu_pruner.model.units import Seconds
from gpu_pruner.settings.channels import ChannelsSettings

GUARDS = ("gpu-pruner-levers", "gpu-pruner-books", "gpu-pruner-nothing-else")
"""Names of the policies, and of their bindings, in `deploy/kustomize/base/guard-rails.yaml`."""

_WORTH_A_WORD: Seconds = 10.0
"""Clocks that differ by more are told of before they stop everything."""


class Guard(Enum):
    """What was found of one admission policy with its binding."""

    THERE = "there"
    ABSENT = "absent"
    UNSEEN = "unseen"
    """Our account may not look, or the server gave no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLook:
    """What the API server said."""

    address: str
    version: str = ""
    who: str = ""
    """Whose credentials we have; empty where the server does not tell."""
    failure: str = ""
    """Why nothing can be watched; empty where it can."""
    view: ClusterView | None = None
    served: frozenset[Resource] = frozenset()
    """Those of our resources that are installed."""
    answers: Mapping[Need, bool] = field(default_factory=dict)
    unasked: tuple[str, ...] = ()
    """Why rights could not be asked for."""
    guards: Mapping[str, Guard] = field(default_factory=dict)
    hold: str = ""
    """Why everything is held; empty where it is not."""


def findings(look: ClusterLook, *, mode: Mode) -> Iterator[Finding]:
    """Say what is so of the server, our kind, the kinds of others, and the guard rails."""
    if look.failure:
        sentence, fix = split(look.failure)
        yield _finding(Level.FAIL, sentence, fix or "check --kubeconfig and --context")
    told = f"Kubernetes {look.version}" if look.version else "a Kubernetes API"
    if look.version and not look.failure:
        who = f", which knows us as {look.who}" if look.who else ""
        yield _finding(Level.OK, f"{look.address} answers as {told}{who}")
    if look.served:
        yield _our_kind(look.served, mode=mode)
        yield _other_kinds(look.served)
    if look.guards:
        yield _guards(look.guards)


def split(message: str) -> tuple[str, str]:
    """Return an error's message as sentence and fix: ours name the fix behind a semicolon."""
    sentence, _, fix = message.partition("; ")
    return sentence, fix


def _our_kind(served: frozenset[Resource], *, mode: Mode) -> Finding:
    if GPUWORKLOADS in served:
        return _finding(Level.OK, f"The kind {GPUWORKLOADS.kind} is installed")
    level = Level.FAIL if mode is Mode.SCALE_DOWN else Level.WARN
    without = "nothing is remembered and nobody is told; scale-down will not start"
    if mode is Mode.SCALE_DOWN:
        without = "scale-down refuses to start"
    return _finding(
        level,
        f"The kind {GPUWORKLOADS.kind} is not installed, so {without}",
        "kubectl apply -k deploy/crds",
    )


def _other_kinds(served: frozenset[Resource]) -> Finding:
    others = sorted(one.kind for one in served if one in {*OWNERS, *GOVERNORS} and "." in one.group)
    if not others:
        return _finding(Level.OK, "No kind of another project that can be paused is installed")
    return _finding(Level.OK, f"Kinds of other projects that are installed: {', '.join(others)}")


def _guards(guards: Mapping[str, Guard]) -> Finding:
    absent = [name for name, found in guards.items() if found is Guard.ABSENT]
    unseen = [name for name, found in guards.items() if found is Guard.UNSEEN]
    if absent:
        return _finding(
            Level.WARN,
            f"{counted(len(absent), 'admission policy is', 'admission policies are')} not "
            f"installed or not bound: {listed(absent)}; only RBAC then limits what our account "
            "may write",
            "kubectl apply -k deploy/kustomize/base (Kubernetes 1.30 and newer)",
        )
    if unseen:
        return _finding(
            Level.OK,
            "Our account may not see admission policies, which is as it should be; whether ours "
            "are installed was not looked at",
            f"kubectl get validatingadmissionpolicybindings {' '.join(unseen)}",
        )
    return _finding(Level.OK, f"The admission policies are installed and bound: {listed(GUARDS)}")


def clocks(*, telemetry: Seconds | None, cluster: Seconds | None, source: str) -> Iterator[Finding]:
    """Say how far the clocks of others are from ours.

    Args:
        telemetry: the telemetry source's minus ours, seconds; None: it was not to be had.
        cluster: the API server's minus ours.
        source: how to name the telemetry source.
    """
    skews = {source: telemetry, "the API server": cluster}
    for who, skew in ((who, skew) for who, skew in skews.items() if skew is not None):
        told = f"The clock of {who} differs from ours by {skew:+.0f} s"
        limit = f"{GREATEST_SKEW_SECONDS:.0f} s"
        if not abs(skew) <= GREATEST_SKEW_SECONDS:
            level, sentence = Level.FAIL, f"{told}; beyond {limit} nothing is done at all"
        elif abs(skew) > _WORTH_A_WORD:
            level, sentence = Level.WARN, f"{told}; from {limit} on nothing is done at all"
        else:
            level, sentence = Level.OK, f"{told} (at most {limit})"
        fix = "" if level is Level.OK else "synchronise the clocks: chronyc tracking on both"
        yield Finding(level=level, area=Area.CLOCKS, sentence=sentence, fix=fix)


def breakers(found: Iterable[Breaker]) -> Iterator[Finding]:
    """Say which breakers a cycle would find open now."""
    found = tuple(found)
    for one in found:
        sentence, fix = split(one.message)
        if one.name == SCREEN_FAILED:
            sentence, fix = "Why there is no complete telemetry stands above", "see telemetry"
        level = Level.WARN if one.name == ALL_HELD else Level.FAIL
        sentence = f"{one.name}: a cycle would do nothing now. {sentence}"
        yield Finding(level=level, area=Area.BREAKERS, sentence=sentence, fix=fix)
    if not found:
        sentence = "No breaker is open: a cycle would judge and, where due, warn"
        yield Finding(level=Level.OK, area=Area.BREAKERS, sentence=sentence)


def unseen_breakers(failure: str) -> Finding:
    """Say that no cycle can begin, because the cluster cannot be watched.

    Args:
        failure: why.
    """
    sentence = f"A cycle cannot begin, because the cluster cannot be watched: {split(failure)[0]}"
    return Finding(level=Level.FAIL, area=Area.BREAKERS, sentence=sentence, fix="see cluster")


def channels(answers: Mapping[Need, bool], *, mode: Mode) -> Iterator[Finding]:
    """Say how owners are told."""
    writes = [granted for need, granted in answers.items() if need.right.resource is EVENTS]
    how = "as a rehearsal" if mode is Mode.DRY_RUN else "before every pause"
    if not writes:
        return
    if all(writes):
        told = f"Owners are told {how} by Events on their workload, and by our log"
        yield Finding(level=Level.OK, area=Area.CHANNELS, sentence=told)
        return
    told = "Owners cannot be told: Events are the only channel, and a pause waits for a warning"
    fix = "grant create and patch on events: see rights"
    yield Finding(level=Level.FAIL, area=Area.CHANNELS, sentence=told, fix=fix)


def outside(settings: ChannelsSettings) -> Iterator[Finding]:
    """List the channels beside Events, and which of them a pause waits for."""
    for one in settings.every():
        kinds = ", ".join(sorted(kind.value for kind in one.messages))
        counts = "" if one.counts_as_delivery else "; it does not count as delivery"
        told = f"Channel {one.name} takes {kinds}{counts}"
        yield Finding(level=Level.OK, area=Area.CHANNELS, sentence=told)
    counting = settings.delivering()
    if any(settings.every()) and EVENT not in counting:
        told = f"A warning counts only when {' or '.join(sorted(counting))} confirmed it"
        yield Finding(level=Level.OK, area=Area.CHANNELS, sentence=told)


def _finding(level: Level, sentence: str, fix: str = "") -> Finding:
    return Finding(level=level, area=Area.CLUSTER, sentence=sentence, fix=fix)
