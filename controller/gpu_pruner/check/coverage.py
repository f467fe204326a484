"""How well each GPU node is covered by telemetry, from the cycle's own evidence. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gpu_pruner.check.finding import Area, Finding, Level, counted, listed
from gpu_pruner.decide.device import Yardstick, primary_of
from gpu_pruner.decide.wording import clock_time
from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import DeviceEvidence
from gpu_pruner.model.units import Timestamp
from gpu_pruner.model.workload import NodeRecord
from gpu_pruner.resolve.attribution import is_live, node_key

_WHOLE_GPUS = "nvidia.com/gpu"

_FROM_NOW_ON = "Exporters are scraped from now on: whether they cover the window shows after it"

_EXPORTERS = (
    "see whether an exporter runs there and is scraped:\n"
    "kubectl get pods -A -o wide --field-selector spec.nodeName={node} | grep dcgm\n"
    "and what it logs; then the targets page of Prometheus"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NodeCoverage:
    """What the devices of one node show."""

    devices: int
    """Whole GPUs, however many slices they have."""
    seen: int
    """Steps with a sample of the primary signal, of the device with the smallest share of them."""
    steps: int
    """Steps that this device is judged by: those with utilisation only have twice as many."""
    newest_at: Timestamp
    """Newest sample of any of its devices."""


def findings(
    evidence: Iterable[DeviceEvidence],
    view: ClusterView,
    yardstick: Yardstick,
    *,
    grows: bool,
) -> Iterator[Finding]:
    """Say which nodes are silent, thin, or short of devices.

    Args:
        evidence: of all devices over the window.
        view: for the nodes.
        yardstick: the moment, the rules and the scrape interval of a cycle.
        grows: whether the window only fills while a controller runs (direct scraping), so that its
            coverage says nothing yet.
    """
    found = _by_node(evidence)
    nodes = list(_gpu_nodes(view))
    if grows and not found:
        # A step is judged when it is over, and none is since the first scrape.
        yield _finding(Level.OK, _FROM_NOW_ON)
        return
    silent = [one for one in nodes if _is_silent(found.get(node_key(one.name)), yardstick)]
    yield from _silence(silent, nodes, found, at=yardstick.at)
    heard = [one for one in nodes if one not in silent]
    yield from _short(heard, found)
    if grows:
        yield _finding(Level.OK, _FROM_NOW_ON)
    elif heard:
        yield from _thin(heard, found, yardstick.rules)
    if not nodes:
        yield _finding(
            Level.WARN,
            "No node offers a GPU",
            "kubectl get nodes -o custom-columns=NAME:.metadata.name,GPU:"
            ".status.allocatable.nvidia\\\\.com/gpu",
        )


def _by_node(evidence: Iterable[DeviceEvidence]) -> dict[str, _NodeCoverage]:
    nodes: dict[str, list[DeviceEvidence]] = {}
    for one in evidence:
        nodes.setdefault(node_key(one.node), []).append(one)
    return {key: _node(found) for key, found in nodes.items()}


def _node(found: list[DeviceEvidence]) -> _NodeCoverage:
    covered = [
        (min(primary.seen_steps, one.period.steps), one.period.steps)
        for one in found
        if (primary := primary_of(one)) is not None and one.period.steps
    ]
    # A device without a primary signal is told of by its fields.
    seen, steps = min(covered, key=lambda one: one[0] / one[1], default=(0, 0))
    return _NodeCoverage(
        devices=len({one.device.uuid for one in found}),
        seen=seen,
        steps=steps,
        newest_at=max((signal.newest_at for one in found for signal in one.signals), default=0.0),
    )


def _gpu_nodes(view: ClusterView) -> Iterator[NodeRecord]:
    """Yield the Ready nodes that have GPUs; what is not Ready is another's trouble."""
    used = {pod.node for pod in view.pods if is_live(pod)}
    for name in sorted(view.nodes):
        node = view.nodes[name]
        if node.ready and (any(node.gpus.values()) or name in used):
            yield node


def _is_silent(found: _NodeCoverage | None, yardstick: Yardstick) -> bool:
    return found is None or yardstick.at - found.newest_at > yardstick.freshness_seconds


def _silence(
    silent: list[NodeRecord],
    nodes: list[NodeRecord],
    found: dict[str, _NodeCoverage],
    *,
    at: Timestamp,
) -> Iterator[Finding]:
    if not silent:
        return
    told = []
    for one in silent:
        known = found.get(node_key(one.name))
        since = (
            "no series" if known is None else f"silent since {clock_time(known.newest_at, now=at)}"
        )
        told.append(f"{one.name} ({since})")
    sentence = f"{len(silent)} of {counted(len(nodes), 'GPU node')} without fresh telemetry: "
    fix = _EXPORTERS.format(node=silent[0].name)
    yield _finding(Level.FAIL, sentence + listed(told), fix)


def _short(nodes: list[NodeRecord], found: dict[str, _NodeCoverage]) -> Iterator[Finding]:
    """Name nodes that show fewer devices than they offer; slices and shares are not counted."""
    short = []
    for one in nodes:
        whole = one.gpus.get(_WHOLE_GPUS, 0)
        known = found[node_key(one.name)].devices
        if set(one.gpus) == {_WHOLE_GPUS} and not one.sharing and known < whole:
            short.append(f"{one.name} ({known} of {whole})")
    if short:
        told = f"{counted(len(short), 'node shows', 'nodes show')} fewer GPUs than "
        told += f"{'it offers' if len(short) == 1 else 'they offer'}: {listed(short)}"
        fix = "compare nvidia-smi -L there with what its exporter shows; restart the exporter"
        yield _finding(Level.WARN, told, fix)


def _thin(
    nodes: list[NodeRecord], found: dict[str, _NodeCoverage], rules: Rules
) -> Iterator[Finding]:
    covered = {one.name: found[node_key(one.name)] for one in nodes}
    covered = {name: one for name, one in covered.items() if one.steps}
    thin = [
        f"{name} ({one.seen} of {one.steps})"
        for name, one in covered.items()
        if one.seen < _needed(one, rules)
    ]
    if thin:
        told = f"{len(thin)} of {counted(len(nodes), 'node')} with telemetry, but not in "
        told += f"{rules.coverage_ratio:.1%} of the steps of a window: {listed(thin)}"
        fix = "wait for a window, if the exporter is new; else look for scrapes that fail: "
        yield _finding(Level.WARN, told, f'{fix}avg_over_time(up{{job=~".*dcgm.*"}}[1h]) < 1')
    elif covered:
        fewest = min(covered, key=lambda name: covered[name].seen / covered[name].steps)
        one = covered[fewest]
        told = f"{counted(len(covered), 'GPU node')} with fresh telemetry; the fewest steps are "
        told += f"those of {fewest}, {one.seen} of {one.steps} ({_needed(one, rules)} are needed)"
        yield _finding(Level.OK, told)


def _needed(one: _NodeCoverage, rules: Rules) -> int:
    return max(1, int(rules.coverage_ratio * one.steps))


def _finding(level: Level, sentence: str, fix: str = "") -> Finding:
    return Finding(level=level, area=Area.COVERAGE, sentence=sentence, fix=fix)
