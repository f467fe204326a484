"""One face for the simulated API server and the lab's real one, for tests that both must pass."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

from support.caller import Answer, Caller
from support.lab import Lab, require_lab
from support.simulated import caller_of

from gpu_pruner.settings.clock import SystemClock
from gpu_pruner.sim.cluster import OPERATOR, SimulatedCluster, Tuning
from gpu_pruner.sim.faults import Fault
from gpu_pruner.sim.kubelet import Pace
from gpu_pruner.sim.tree import JsonObject, elements, text
from gpu_pruner.sim.world import World

AT_ONCE = Pace(start_seconds=0.05, ready_seconds=0.05, stop_seconds=0.05)
"""How long the steps of a simulated pod's life take."""
_WAIT_SECONDS = 60.0
_KUBECTL_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Server:
    """A server, an administrator who speaks to it, and a namespace of the test's own."""

    url: str
    caller: Caller
    namespace: str
    kubeconfig: Path
    lab: Lab | None = None
    anybody: ssl.SSLContext | None = None
    """What trusts the server's certificate."""
    speakers: list[Caller] = field(default_factory=list)
    cluster: SimulatedCluster | None = None

    def path(self, plural: str, *, group: str = "v1") -> str:
        """Return the path of a kind in the test's namespace.

        Args:
            plural: of the kind.
            group: group and version, or the version alone for the core group.
        """
        root = "/apis" if "/" in group else "/api"
        return f"{root}/{group}/namespaces/{self.namespace}/{plural}"

    @property
    def config_maps(self) -> str:
        return self.path("configmaps")

    @property
    def deployments(self) -> str:
        return self.path("deployments", group="apps/v1")

    async def account(self, name: str, *audiences: str) -> tuple[Caller, str]:
        """Make a ServiceAccount without rights; return somebody with its token, and the token."""
        accounts = self.path("serviceaccounts")
        await self.caller.post(accounts, {"metadata": {"name": name}})
        token = await self.token(name, *audiences)
        return self._speaking(token), token

    async def token(self, name: str, *audiences: str) -> str:
        """Return a new token of a ServiceAccount (TokenRequest API)."""
        path = f"{self.path('serviceaccounts')}/{name}/token"
        spec: JsonObject = {"expirationSeconds": 3600}
        answer = await self.caller.post(path, {"spec": spec | {"audiences": list(audiences)}})
        assert answer.status == HTTPStatus.CREATED, answer.raw
        return text(answer.body, "status", "token")

    def _speaking(self, token: str) -> Caller:
        speaker = Caller(self.url, token=token, tls=self.anybody)
        self.speakers.append(speaker)
        return speaker

    async def throttled(self) -> Answer:
        """Return what somebody gets who is asked to come back later.

        A real server says so to whoever evicts a pod whose disruption budget it has not counted.
        """
        if self.cluster:
            self.cluster.faults.add(
                Fault(status=429, reason="TooManyRequests", retry_after_seconds=10, times=1)
            )
            return await self.caller.get(self.config_maps)
        labels: JsonObject = {"app": "held"}
        containers = [{"name": "main", "image": "registry.example/server:1"}]
        pod: JsonObject = {"metadata": {"name": "held", "labels": labels}}
        await self.caller.post(self.path("pods"), pod | {"spec": {"containers": containers}})
        running: JsonObject = {"status": {"phase": "Running"}}
        await self.caller.patch(f"{self.path('pods')}/held/status", running)
        budget: JsonObject = {"minAvailable": 1, "selector": {"matchLabels": labels}}
        budgets = self.path("poddisruptionbudgets", group="policy/v1")
        await self.caller.post(budgets, {"metadata": {"name": "held"}, "spec": budget})
        eviction: JsonObject = {"apiVersion": "policy/v1", "kind": "Eviction"}
        return await self.caller.post(
            f"{self.path('pods')}/held/eviction", eviction | {"metadata": {"name": "held"}}
        )

    def stranger(self) -> Caller:
        """Return somebody whose token the server does not know."""
        return self._speaking("unknown")

    def anonymous(self) -> Caller:
        """Return somebody without a token."""
        return self._speaking("")

    @asynccontextmanager
    async def closing(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            for one in (self.caller, *self.speakers):
                await one.close()

    async def until_gone(self, path: str) -> None:
        """Wait until an object is not there any more."""
        async with asyncio.timeout(_WAIT_SECONDS):
            while (await self.caller.get(path)).status != HTTPStatus.NOT_FOUND:
                await asyncio.sleep(0.05)

    async def forget_history(self) -> None:
        """Make every version and continue token given out so far expire."""
        if self.cluster:
            self.cluster.forget_history()
        if self.lab:
            await asyncio.to_thread(self.lab.compact)

    async def kubectl(self, *arguments: str, stdin: str = "", fails: bool = False) -> str:
        """Run kubectl as the administrator, in the test's namespace, and return what it says."""
        process = await self.start_kubectl(*arguments)
        waiting = process.communicate(stdin.encode())
        out, err = await asyncio.wait_for(waiting, _KUBECTL_SECONDS)
        said = (err if fails else out).decode()
        if bool(process.returncode) is not fails:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {out.decode()}{err.decode()}")
        return said

    async def start_kubectl(self, *arguments: str) -> asyncio.subprocess.Process:
        mine = {
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.kubeconfig.parent / "kubectl-cache"),
        }
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            *(require_lab(), "kubectl", "-n", self.namespace, *arguments),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=os.environ | mine,
        )


@asynccontextmanager
async def simulated(folder: Path, *, anonymous: str = "") -> AsyncIterator[Server]:
    """Start a simulated cluster, empty but for a few namespaces.

    Args:
        folder: for the kubeconfig.
        anonymous: who somebody without a token is; kubectl sends none over plain HTTP.
    """
    kubeconfig = folder / "kubeconfig"
    tuning = Tuning(anonymous=anonymous, pace=AT_ONCE)
    async with SimulatedCluster(World(), SystemClock(), tuning=tuning) as cluster:
        kubeconfig.write_text(cluster.kubeconfig(OPERATOR))
        caller = caller_of(cluster, OPERATOR)
        namespace = await _new_namespace(caller)
        server = Server(cluster.url, caller, namespace, kubeconfig, cluster=cluster)
        async with server.closing():
            yield server


@asynccontextmanager
async def real(lab: Lab) -> AsyncIterator[Server]:
    """Speak to the lab's API server as its administrator."""
    caller = Caller(lab.url, tls=lab.tls())
    anybody = ssl.create_default_context(cafile=lab.directory / "ca.crt")
    namespace = await _new_namespace(caller)
    await _until_there(caller, f"/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt")
    server = Server(lab.url, caller, namespace, lab.kubeconfig(), lab=lab, anybody=anybody)
    async with server.closing():
        yield server
        # Whoever resets the lab later need not wait for it.
        await caller.delete(f"/api/v1/namespaces/{namespace}")


async def _new_namespace(caller: Caller) -> str:
    answer = await caller.post("/api/v1/namespaces", {"metadata": {"generateName": "team-"}})
    assert answer.status == HTTPStatus.CREATED, answer.raw
    return answer.name


async def _until_there(caller: Caller, path: str) -> None:
    """Wait for what the controllers put into every namespace."""
    async with asyncio.timeout(_WAIT_SECONDS):
        while (await caller.get(path)).status != HTTPStatus.OK:
            await asyncio.sleep(0.02)


async def installed(caller: Caller, crd: JsonObject) -> None:
    """Create a CRD unless it is there, and wait until its kind is served."""
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await caller.post(crds, crd)
    spec = crd["spec"]
    name = text(crd, "metadata", "name")
    (version,) = {text(one, "name") for one in elements(spec, "versions")}
    plural = f"/apis/{text(spec, 'group')}/{version}/{text(spec, 'names', 'plural')}"
    async with asyncio.timeout(_WAIT_SECONDS):
        while not _is_established((await caller.get(f"{crds}/{name}")).body):
            await asyncio.sleep(0.05)
        while (await caller.get(plural)).status != HTTPStatus.OK:
            await asyncio.sleep(0.05)


def _is_established(crd: JsonObject) -> bool:
    conditions = elements(crd, "status", "conditions")
    return ("Established", "True") in {(text(c, "type"), text(c, "status")) for c in conditions}
