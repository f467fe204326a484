"""A described world in the lab with everything the product needs, and the controller on request.

The real control plane runs the world's workloads, the fake kubelet its pods, and a real Prometheus
has the past of their GPUs and scrapes on. Everything happens in real time: the pods are *said* to
have started long ago, and their past is back-filled, so that a window need not be waited for.
What the controller may do is what `deploy/kustomize/base` grants, applied as shipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import requests
from support.audit import Entry
from support.controller import WAIT_SECONDS, Controller
from support.exporters import Exporters
from support.kubelet import FakeKubelet, Pace
from support.lab import Lab
from support.operating import BY_KIND, Server
from support.operators import MADE, Operators
from support.prometheus import PrometheusServer, backfill

from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.sim.history import TARGET_LABELS, Scraping
from gpu_pruner.sim.seeding import manifest_of
from gpu_pruner.sim.tree import JsonObject, elements, mapping, number, text, texts
from gpu_pruner.sim.world import Node, Workload, World

OURS = "system:serviceaccount:gpu-pruner-system:gpu-pruner"
OUR_NAMESPACE = "gpu-pruner-system"
BASE = Path(__file__).parents[2] / "deploy" / "kustomize" / "base"
CRDS = Path(__file__).parents[1] / "lab" / "crds"

AGE_SECONDS = 3600.0
"""How long ago the world's pods are said to have started."""
HISTORY_SECONDS = 1200.0
"""More than a cold start looks back: two windows of 4 minutes, and 3 minutes."""
QUICK = ("-t", "4", "-g", "0", "-c", "2", "--ack-grace-period", "6")
"""The shortest window that is allowed (4 steps of a minute), and a story of seconds."""

NODES = (Node(name="node-1", gpus=4), Node(name="node-2", gpus=4))

_PODS_PER_SECOND = 3.0
"""That a busy machine starts at least; 20 were seen on a quiet one."""
_AT_ONCE = 50
"""Objects that one kubectl makes: it is slow and has its patience."""
_API_VERSIONS = {one.kind: one.api_version for one in BY_KIND.values()} | {"DaemonSet": "apps/v1"}
_PATHS = {one.kind.lower(): one for one in BY_KIND.values()}


def install(lab: Lab) -> Path:
    """Apply what we ship, as shipped, and return a kubeconfig of our ServiceAccount."""
    phase = lab.kubectl(
        "get", "namespaces", OUR_NAMESPACE, "--ignore-not-found", "-o", "jsonpath={.status.phase}"
    )
    if phase == "Terminating":
        lab.kubectl("wait", "--for=delete", f"namespace/{OUR_NAMESPACE}", "--timeout=60s")
    lab.kubectl("apply", "-f", CRDS)
    lab.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    lab.kubectl("apply", "-k", BASE)
    return lab.service_account(OUR_NAMESPACE, "gpu-pruner")


@dataclass(frozen=True)
class Thing:
    """An object of any kind, with its namespace."""

    body: JsonObject
    pods: int = 0
    """How many come of it."""

    @property
    def ref(self) -> str:
        """Return ``kind/namespace/name``."""
        meta = mapping(self.body, "metadata")
        return f"{text(self.body, 'kind').lower()}/{text(meta, 'namespace')}/{text(meta, 'name')}"

    @property
    def namespace(self) -> str:
        return text(self.body, "metadata", "namespace")


@dataclass
class Product:
    """A context manager around one world: everything in it runs, and is Ready, when it begins."""

    lab: Lab
    world: World
    directory: Path
    things: Sequence[Thing] = ()
    """What the world has no word for: kinds that others define."""
    scrape_interval: str = "5s"
    for_one: bool = False
    """Whether the lab ends with it, so that there is no need to clear up."""
    kubeconfig: Path = field(init=False)
    """Our ServiceAccount's."""
    prometheus: str = field(init=False)
    """URL of Prometheus."""
    kubelet: FakeKubelet = field(init=False)

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        try:
            self.kubeconfig = install(self.lab)
            self._session = self._stack.enter_context(_administrator(self.lab))
            age = Pace(age_seconds=AGE_SECONDS)
            kubelet = FakeKubelet(self.lab.api("kubelet"), self.world, pace=age)
            self.kubelet = self._stack.enter_context(kubelet)
            self._stack.callback(self._clear)
            self._make_workloads()
            self._make_things()
            self._until_everything_runs()
            self.kubelet.pace = Pace()
            self.prometheus = self._telemetry()
            self.lab.audit.mark()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def wanted(self) -> int:
        """Return how many pods the world's workloads have."""
        described = sum(_pods_of(one) for one in self.world.workloads)
        return described + sum(one.pods for one in self.things)

    @property
    def namespaces(self) -> list[str]:
        """Return the namespaces of all that it has."""
        return sorted({one.namespace for one in (*self.world.workloads, *self.things)})

    @property
    def team(self) -> str:
        """Return the namespace of the world's first workload."""
        return self.world.workloads[0].namespace

    @property
    def ref(self) -> str:
        """Return the reference of the world's first workload, ``kind/namespace/name``."""
        one = self.world.workloads[0]
        return f"{one.kind.lower()}/{one.namespace}/{one.name}"

    def controller(
        self, *arguments: str, mode: str = "scale-down", kubeconfig: Path | None = None
    ) -> Controller:
        """Return the controller, not started yet.

        Args:
            arguments: more of them; they win over the quick ones.
            mode: as for `-r`.
            kubeconfig: another than our ServiceAccount's.
        """
        telemetry = ("--prometheus-url", self.prometheus)
        return Controller(
            kubeconfig or self.kubeconfig,
            self.directory / "controller.log",
            ("-r", mode, *telemetry, *QUICK, *arguments),
        )

    def by_hand(self, *arguments: str, kubeconfig: Path | None = None) -> str:
        """Run a command of ours, as the administrator by default, and return what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "gpu_pruner.cli", *arguments],
            env=os.environ | {"KUBECONFIG": str(kubeconfig or self.lab.kubeconfig())},
            capture_output=True,
            text=True,
            check=False,
            timeout=WAIT_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    # What the cluster holds, as the administrator sees it.

    def apply(self, body: JsonObject) -> None:
        self.lab.kubectl("apply", "-f", "-", stdin=json.dumps(body))

    def get(self, path: str) -> JsonObject:
        """Return what a path of the API server answers; empty where it has no such object."""
        answer = self._session.get(self.lab.url + path, timeout=30)
        if answer.status_code == requests.codes.not_found:
            return {}
        answer.raise_for_status()
        found: JsonObject = answer.json()
        return found

    def object(self, ref: str) -> JsonObject:
        """Return an object by ``kind/namespace/name``."""
        kind, namespace, name = ref.split("/")
        return self.get(_PATHS[kind].path(namespace=namespace, name=name))

    def size(self, ref: str) -> int:
        """Return ``spec.replicas``."""
        return number(self.object(ref), "spec", "replicas", default=-1)

    def annotations(self, ref: str) -> dict[str, str]:
        return texts(self.object(ref), "metadata", "annotations")

    def pods(self, namespace: str = "") -> list[JsonObject]:
        """Return the pods of a namespace, or of all that the world names."""
        return [
            pod
            for space in ([namespace] if namespace else self.namespaces)
            for pod in elements(self.get(f"/api/v1/namespaces/{space}/pods"), "items")
        ]

    def uids(self, namespace: str = "") -> set[str]:
        return {text(one, "metadata", "uid") for one in self.pods(namespace)}

    def ready(self, namespace: str = "") -> int:
        """Return how many pods are Ready."""
        return sum(_is_ready(one) for one in self.pods(namespace))

    # What was asked of the API server: the witness.

    def writes(self, user: str = OURS) -> Sequence[Entry]:
        """Return the writes of somebody since everything ran, in order."""
        return [one for one in self.lab.audited(user) if one.is_write]

    def workload_writes(self, user: str = OURS) -> Sequence[Entry]:
        """Return those that went to anything but our own objects and Events."""
        return [one for one in self.writes(user) if one.object_ref.resource not in BOOKKEEPING]

    def lever_writes(self, ref: str, user: str = OURS) -> Sequence[Entry]:
        """Return the writes to one workload's object."""
        kind, namespace, name = ref.split("/")
        place = (_PATHS[kind].plural, namespace, name)
        return [one for one in self.writes(user) if _place(one) == place]

    # Beginning and end.

    def _until_everything_runs(self) -> None:
        deadline = time.monotonic() + WAIT_SECONDS + self.wanted / _PODS_PER_SECOND
        while (ready := self.ready()) < self.wanted:
            if time.monotonic() > deadline:
                raise AssertionError(f"{ready} of {self.wanted} pods are Ready")
            time.sleep(0.2 + self.wanted / 500)

    def _make_workloads(self) -> None:
        described = [manifest(one) for one in self.world.workloads]
        for start in range(0, len(described), _AT_ONCE):
            some = described[start : start + _AT_ONCE]
            bodies: JsonObject = {"apiVersion": "v1", "kind": "List", "items": some}
            self.lab.kubectl("create", "-f", "-", stdin=json.dumps(bodies))

    def _make_things(self) -> None:
        if self.things:
            kinds = {text(one.body, "kind") for one in self.things}
            kinds |= {made for one in kinds for made in MADE.get(one, ())}
            server = Server(self.lab.url, _administrator(self.lab))
            self._stack.enter_context(Operators(server, kinds, self.namespaces))
        for one in self.things:
            self.lab.kubectl("create", "-f", "-", stdin=json.dumps(one.body))

    def _telemetry(self) -> str:
        exporters = self._stack.enter_context(Exporters(self.kubelet.exposition))
        now = time.time()
        past = Scraping(start=now - HISTORY_SECONDS, end=now - 1, interval_seconds=15)
        data = backfill(self.kubelet.history(past), self.directory)
        targets = [
            {
                "targets": [exporters.address],
                "labels": {
                    "__metrics_path__": f"/exporters/{node.name}/metrics",
                    **{key: label.format(node=node.name) for key, label in TARGET_LABELS.items()},
                },
            }
            for node in self.world.nodes
        ]
        server = PrometheusServer(
            self.directory / "prometheus",
            data=data,
            static_configs=tuple(targets),
            scrape_interval=self.scrape_interval,
        )
        return self._stack.enter_context(server).url

    def _clear(self) -> None:
        if self.for_one:
            return
        self.kubelet.thaw()
        self.lab.reset(keep=[OUR_NAMESPACE])


BOOKKEEPING = frozenset(
    {"gpuworkloads", "events", "leases", "tokenreviews", "subjectaccessreviews"}
)
"""What is written in every mode."""


def manifest(workload: Workload) -> JsonObject:
    """Return a described workload as somebody would apply it."""
    body = manifest_of(workload)
    metadata = mapping(body, "metadata") | {"namespace": workload.namespace}
    head: JsonObject = {"apiVersion": _API_VERSIONS[workload.kind], "kind": workload.kind}
    return head | body | {"metadata": metadata}


def until(happened: Callable[[], object], *, seconds: float = WAIT_SECONDS) -> None:
    """Wait for something that nobody but the cluster does."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.1)


def _administrator(lab: Lab) -> requests.Session:
    session = requests.Session()
    session.trust_env = False  # neither proxies nor other authorities
    session.cert = (str(lab.directory / "admin.crt"), str(lab.directory / "admin.key"))
    session.verify = str(lab.directory / "ca.crt")
    return session


def _is_ready(pod: JsonObject) -> bool:
    return any(
        (text(one, "type"), text(one, "status")) == ("Ready", "True")
        for one in elements(pod, "status", "conditions")
    )


def _pods_of(workload: Workload) -> int:
    return workload.replicas if workload.kind in {"Deployment", "StatefulSet"} else 1


def _place(entry: Entry) -> tuple[str, str, str]:
    at = entry.object_ref
    return at.resource, at.namespace, at.name


def a_world(*workloads: Workload, nodes: tuple[Node, ...] = NODES) -> World:
    """Return a world whose exporters read their GPUs often, so that stories need not wait."""
    return World(nodes=nodes, workloads=workloads, collect_seconds=5.0)


def record(entry: Entry) -> JsonObject:
    """Return the pause record that a patch wrote."""
    found: JsonObject = json.loads(
        text(entry.request_object, "metadata", "annotations", PAUSED) or "{}"
    )
    return found


def right(entry: Entry) -> tuple[str, str, str]:
    """Return which right a request used: verb, group, and resource with its subresource."""
    at = entry.object_ref
    place = f"{at.resource}/{at.subresource}" if at.subresource else at.resource
    return entry.verb, at.api_group, place


def phases(entries: Sequence[Entry]) -> list[str]:
    """Return the phases that were written into GPUWorkloads, in order."""
    return [
        phase
        for one in entries
        if one.object_ref.resource == "gpuworkloads"
        and (phase := text(one.request_object, "status", "phase"))
    ]


def told(entries: Sequence[Entry]) -> list[str]:
    """Return the reasons of the Events that were created, in order."""
    return [
        text(one.request_object, "reason")
        for one in entries
        if (one.object_ref.resource, one.verb) == ("events", "create")
    ]
