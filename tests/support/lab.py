"""A real Kubernetes control plane on loopback, one process per component.

Starts etcd, kube-apiserver, kube-controller-manager and kube-scheduler from the lab's one binary
(`tests/lab/build.sh`), with RBAC, ServiceAccount and PodSecurity admission and the audit log on;
`support.kubelet` plays the nodes. Nothing here touches a process that it did not start, and the
components end by themselves when the tests are killed.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

import psutil
import pytest
import requests
from support import lab_flags
from support.api_server import Api
from support.audit import POLICY, AuditLog, Entry

from gpu_pruner.sim.tree import JsonObject

ADMIN = "lab-admin"
"""Common name of the administrator: the user of `kubectl` and of `Lab.api`."""

OWN_NAMESPACES = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
"""What the API server makes by itself."""

_OWNERS = "cronjobs,jobs,deployments,statefulsets,daemonsets"
_OWNED = "replicasets,pods"
"""What is left to delete when the owners are gone; before, kubectl would delete them one by one."""
_ACTIVE_NAMESPACES = 'jsonpath={.items[?(@.status.phase=="Active")].metadata.name}'
_CUSTOM_KINDS = 'jsonpath={.items[?(@.spec.scope=="Namespaced")].metadata.name}'
_START_SECONDS = 90.0
_KUBECTL_SECONDS = 180.0
_STOP_SECONDS = 10.0
_PORTS = range(15_000, 32_000)
"""Below Linux' ports of outgoing connections, which begin at 32768."""
_BUILD = Path(__file__).parents[1] / "lab" / "build.sh"


def require_lab() -> Path:
    """Return the lab's binary; skip the calling test where it has not been built."""
    asked = subprocess.run([_BUILD, "--where"], capture_output=True, text=True, check=True)
    binary = Path(asked.stdout.strip())
    if not binary.exists():
        pytest.skip(
            "the lab is not built: install Go 1.26 (https://go.dev/doc/install), `make lab`"
        )
    return binary


@dataclass
class Lab:
    """A context manager around one control plane. Everything it writes goes to its directory."""

    directory: Path
    binary: Path
    url: str = field(init=False, default="")
    audit: AuditLog = field(init=False)
    _etcd_port: int = field(init=False, default=0)
    _flags: dict[str, Sequence[str]] = field(init=False, default_factory=dict)
    _processes: dict[str, subprocess.Popen[bytes]] = field(init=False, default_factory=dict)

    def __enter__(self) -> Self:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.audit = AuditLog(self.directory / "audit.log")
        (self.directory / "audit-policy.yaml").write_text(POLICY)
        subprocess.run([self.binary, "certs", self.directory], check=True, timeout=60)
        etcd, peer, port = self._ports(3)
        self._etcd_port = etcd
        self.url = f"https://127.0.0.1:{port}"
        self._flags = {
            "etcd": lab_flags.etcd(self.directory, port=etcd, peer=peer),
            "apiserver": lab_flags.apiserver(self.directory, etcd_port=etcd, port=port),
            "controllers": lab_flags.controllers(self.directory, self.kubeconfig("controllers")),
            "scheduler": lab_flags.scheduler(self.kubeconfig("scheduler")),
        }
        try:
            for component in self._flags:
                self.start(component)
            self.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=60s")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    # Components: etcd, apiserver, controllers, scheduler.

    def start(self, component: str) -> None:
        """Start a component, and wait for the API server where it is that."""
        with (self.directory / f"{component}.log").open("ab") as log:
            self._processes[component] = subprocess.Popen(
                [self.binary, component, *self._flags[component]],
                stdin=subprocess.PIPE,  # the component ends when this end of it closes
                stdout=log,
                stderr=log,
                cwd=self.directory,
                env=os.environ | {"LAB_ENDS_WITH_STDIN": "true"},
            )
        if component == "apiserver":
            self._wait_until_ready()

    def stop(self, component: str, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop a component and wait until it is gone."""
        process = self._processes.pop(component)
        if process.poll() is None:
            process.send_signal(how)
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process.stdin:
            process.stdin.close()

    def signal(self, component: str, how: signal.Signals) -> None:
        """Send a signal, SIGSTOP and SIGCONT for example."""
        self._processes[component].send_signal(how)

    def memory_bytes(self) -> dict[str, int]:
        """Return the resident memory of each running component."""
        return {
            name: int(psutil.Process(one.pid).memory_info().rss)
            for name, one in self._processes.items()
        }

    # Talking to it.

    def kubectl(
        self, *arguments: str | Path, stdin: str = "", kubeconfig: Path | None = None
    ) -> str:
        """Run kubectl, as the administrator by default, and return what it prints.

        Raises:
            RuntimeError: it failed; holds what it says.
        """
        ended = self._run_kubectl(*arguments, stdin=stdin, kubeconfig=kubeconfig)
        if ended.returncode:
            raise RuntimeError(f"kubectl {' '.join(map(str, arguments))}: {ended.stderr}")
        return ended.stdout

    def api(self, user: str = "admin") -> Api:
        """Return a session for a certificate's holder: admin, kubelet, controllers, scheduler."""
        return Api(self.url, self.tls(user))

    def tls(self, user: str = "admin") -> ssl.SSLContext:
        """Return what a certificate's holder needs to speak to the API server."""
        context = ssl.create_default_context(cafile=self.directory / "ca.crt")
        context.load_cert_chain(self.directory / f"{user}.crt", self.directory / f"{user}.key")
        return context

    def kubeconfig(self, user: str = "admin") -> Path:
        """Return a kubeconfig for a certificate's holder."""
        names = {"client-certificate": f"{user}.crt", "client-key": f"{user}.key"}
        credentials = {key: str(self.directory / name) for key, name in names.items()}
        return self._write_kubeconfig(user, dict(credentials))

    def compact(self) -> None:
        """Make etcd forget all history, as the API server orders every few minutes by itself.

        Within 15 seconds the API server forgets the unfinished lists that it remembers, too.
        """
        key = base64.b64encode(b"compact_rev_key").decode()  # where API servers tell each other
        made = base64.b64encode(b"lab").decode()  # a newer revision than any that was given out
        revision = self._etcd("put", {"key": made, "value": made})["header"]["revision"]
        self._etcd("compaction", {"revision": revision})
        value = base64.b64encode(str(revision).encode()).decode()
        self._etcd("put", {"key": key, "value": value})

    def service_account(self, namespace: str, name: str, *, seconds: int = 3600) -> Path:
        """Return a kubeconfig with a new token of a ServiceAccount (TokenRequest API)."""
        token = self.kubectl("create", "token", name, "-n", namespace, f"--duration={seconds}s")
        return self._write_kubeconfig(f"{namespace}-{name}", {"token": token.strip()})

    def audited(self, user: str = "") -> Sequence[Entry]:
        """Return what was asked since the audit log's mark and before now."""
        fence = f"/version?fence={uuid4()}"
        self.kubectl("get", "--raw", fence)
        self.audit.until(lambda one: one.request_uri == fence)
        return self.audit.entries(user=user)

    def namespace(self) -> str:
        """Make a namespace with a name of its own, and return that.

        A deleted namespace takes the real controller more than 5 seconds (it waits for API servers
        that do not know yet), so that a test had better not use the name of the one before.
        """
        name = f"team-{uuid4().hex[:8]}"
        self.kubectl("create", "namespace", name)
        return name

    def reset(self, *, keep: Sequence[str] = ()) -> None:
        """Empty the namespaces that tests have made, begin to delete them, mark the audit log.

        Waits until their pods are gone, which a kubelet must confirm. Leaves alone the kept
        namespaces, nodes, and whatever else has no namespace.
        """
        listed = self.kubectl("get", "namespaces", "-o", _ACTIVE_NAMESPACES)
        custom = ",".join(self.kubectl("get", "crds", "-o", _CUSTOM_KINDS).split())
        made = sorted(set(listed.split()) - OWN_NAMESPACES - set(keep))
        for name in made:
            how = ("--all", "-n", name, "--timeout=120s")
            if custom:  # not in the foreground: the garbage collector learns of a kind in 30 s
                self.kubectl("delete", custom, *how)
            self.kubectl("delete", _OWNERS, "--cascade=foreground", *how)
            self.kubectl("delete", _OWNED, "--cascade=foreground", *how)
        if made:
            self.kubectl("delete", "namespaces", "--wait=false", *made)
        self.audit.mark()

    def _run_kubectl(
        self, *arguments: str | Path, stdin: str = "", kubeconfig: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        mine = {
            "KUBECONFIG": str(kubeconfig or self.kubeconfig()),
            "KUBECACHEDIR": str(self.directory / "kubectl-cache"),
        }
        return subprocess.run(
            [self.binary, "kubectl", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=_KUBECTL_SECONDS,
            env=os.environ | mine,
        )

    def _write_kubeconfig(self, name: str, user: JsonObject) -> Path:
        cluster = {"server": self.url, "certificate-authority": str(self.directory / "ca.crt")}
        path = self.directory / f"{name}.kubeconfig"
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "lab",
            "clusters": [{"name": "lab", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": name}}],
        }
        path.write_text(json.dumps(content))  # JSON is YAML
        path.chmod(0o600)
        return path

    # Starting and ending.

    def _etcd(self, call: str, body: JsonObject) -> dict[str, dict[str, str]]:
        url = f"http://127.0.0.1:{self._etcd_port}/v3/kv/{call}"
        answer = requests.post(url, json=body, timeout=30)
        answer.raise_for_status()
        found: dict[str, dict[str, str]] = answer.json()
        return found

    def _ports(self, count: int) -> list[int]:
        """Return free ports that no outgoing connection can take while a component is down."""
        found: set[int] = set()
        while len(found) < count:
            port = _PORTS.start + secrets.randbelow(len(_PORTS))
            with socket.socket() as probe, suppress(OSError):
                probe.bind(("127.0.0.1", port))
                found.add(port)
        return list(found)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            for name, process in self._processes.items():
                if process.poll() is not None:
                    raise RuntimeError(f"{name} ended at once: {self._tail(name)}")
            if self._run_kubectl("get", "--raw", "/readyz").stdout == "ok":
                return
            time.sleep(0.1)
        raise RuntimeError(f"the API server did not get ready: {self._tail('apiserver')}")

    def _tail(self, component: str) -> str:
        return (self.directory / f"{component}.log").read_text(errors="replace")[-2000:]

    def _end(self) -> None:
        for component in reversed(list(self._processes)):
            self.stop(component, signal.SIGKILL)  # nobody needs what it would still write
