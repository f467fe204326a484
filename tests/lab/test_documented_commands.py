"""Every command of the tutorials and how-to pages, typed as it stands there, in a real cluster.

A page is one sitting at one keyboard: its blocks are followed in order, files are written where
the page says so, and what a page shows is compared with what was printed. The cluster is the one
of `support.documented`. What is not run here is listed in `support.apart`, each with why.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
from support.apart import APART, CHANNELS_PAGE, DEMO_PAGES, is_of_the_demo
from support.documented import NOTEBOOK_1, Documented, world
from support.jupyterhubs import SCOPES
from support.lab import Lab, require_lab
from support.pages import PAGES, ROOT, Block, Command, blocks
from support.prometheus import free_port
from support.terminal import Terminal, checkout

pytestmark = [pytest.mark.lab, pytest.mark.prometheus, pytest.mark.timeout(300)]

BEFORE = {
    "kubectl get deployment train -n team-a": (
        "gpu-pruner pause deployment/team-a/train --reason 'for the page'"
    ),
    "kubectl annotate notebook notebook-1 -n team-a": (
        "gpu-pruner pause notebook/team-a/notebook-1 --reason 'for the page'"
    ),
    "gpu-pruner resume deployment/team-a/train\n": (
        "gpu-pruner pause deployment/team-a/train --reason 'for the page'"
    ),
    "gpu-pruner explain deployment/team-a/train --controller http://gpu-pruner-dashboard:8080": (
        "gpu-pruner run --prometheus-url http://localhost:9090"
    ),
    "kubectl apply -k deploy/crds": "kubectl delete namespace gpu-pruner-system",
    "kubectl -n gpu-pruner-system get lease gpu-pruner": (
        "gpu-pruner run --prometheus-url http://localhost:9090"
    ),
}
"""What has happened before a command makes sense, by how the command begins."""
PROBLEMS = 3
"""How `check` ends there, as two exporters are not as they should be."""
CHANGING = (
    "first-dry-run.md",
    "keep-a-workload.md",
    "pause-and-resume.md",
    "run-in-the-cluster.md",
    "say-whom-to-tell.md",
)
"""Pages that leave the cluster otherwise than they found it come last."""
IN_ORDER = sorted(
    (page for page in PAGES if page.name not in {*DEMO_PAGES, CHANNELS_PAGE}),
    key=lambda page: (page.name in CHANGING, page.name),
)


@dataclass(frozen=True)
class Place:
    """Where pages are followed."""

    cluster: Documented
    folder: Path
    """The checkout."""

    def terminal(self, folder: Path) -> Terminal:
        """Return a keyboard of an administrator, with a kubeconfig of its own."""
        kubeconfig = folder / "kubeconfig"
        shutil.copy(self.cluster.lab.kubeconfig(), kubeconfig)
        (folder / "token").write_text("a-token", encoding="utf-8")
        port, prometheus = free_port(), self.cluster.prometheus
        exporters = f"http://{self.cluster.exporters}/exporters"
        (folder / "history").mkdir()
        return Terminal(
            self.folder,
            environment={
                "KUBECONFIG": str(kubeconfig),
                "XDG_CACHE_HOME": str(folder / "cache"),
                "KUBECACHEDIR": str(folder / "kubectl-cache"),
            },
            instead={
                "https://prometheus.monitoring.svc:9090": prometheus,
                "http://prometheus.monitoring:9090": prometheus,
                "http://prometheus.example:9090": prometheus,
                "http://thanos-query:9090": prometheus,
                "http://localhost:9090": prometheus,
                "http://10.0.3.17:9400/metrics": f"{exporters}/node-a/metrics",
                "http://10.0.3.18:9400/metrics": f"{exporters}/node-b/metrics",
                "http://dcgm-exporter.gpu-operator.svc:9400/metrics": f"{exporters}/node-a/metrics",
                "http://gpu-pruner-dashboard:8080": f"http://127.0.0.1:{port}",
                "http://localhost:8080": f"http://127.0.0.1:{port}",
                "/var/run/secrets/prometheus/token": str(folder / "token"),
                "/etc/gpu-pruner/postgres-password": str(folder / "token"),
                "/secrets/jupyterhub/token": str(folder / "token"),
                "/var/lib/gpu-pruner": str(folder / "history"),
                "https://10.0.0.1:6443": self.cluster.lab.url,
                "--cluster=CLUSTER": "--cluster=lab",
            },
            ends={"gpu-pruner check": PROBLEMS},
            listen_port=port,
        )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("documented")
    binary = require_lab()
    (folder / "telemetry").mkdir()
    with (
        Lab(folder / "lab", binary) as lab,
        Documented(
            lab, world(), folder / "telemetry", things=[NOTEBOOK_1], for_one=True
        ) as cluster,
    ):
        yield Place(cluster, checkout(folder, binary))


def objects_in(terminal: Terminal) -> str:
    """Return the name of a GPUWorkload in team-a, which a page calls OBJECT."""
    told = terminal.type(
        Command("", "kubectl get gpw -n team-a -o jsonpath={.items[0].metadata.name}", None)
    )
    return told.strip()


def prepare(terminal: Terminal, block: Block) -> None:
    for begin, command in BEFORE.items():
        if block.text.removeprefix("$ ").startswith(begin):
            terminal.type(Command(f"before {block.place}", command, None))
    if " OBJECT " in block.text:
        terminal.instead = {**terminal.instead, " OBJECT ": f" {objects_in(terminal)} "}


@pytest.mark.parametrize("page", IN_ORDER, ids=lambda page: page.stem)
def test_a_page_can_be_followed(place: Place, page: Path, tmp_path: Path) -> None:
    place.cluster.lab.kubectl("delete", "gpw", "--all", "-A", "--ignore-not-found")
    with place.terminal(tmp_path) as terminal:
        for block in blocks(page):
            if is_of_the_demo(block):
                continue
            prepare(terminal, block)
            terminal.follow(block, apart=APART)
            if block.file.rpartition("/")[2].startswith("settings"):
                loads = f"gpu-pruner run --config {block.file} --print-settings"
                terminal.type(Command(block.place, loads, None))


def test_alerts_on_a_page_are_questions_that_prometheus_takes(place: Place) -> None:
    asked = [
        line
        for page in PAGES
        for block in blocks(page)
        if block.language == "promql"
        for line in block.text.splitlines()
    ]
    assert asked
    for line in asked:
        answer = requests.get(
            f"{place.cluster.prometheus}/api/v1/query", params={"query": line}, timeout=30
        )
        assert answer.json()["status"] == "success", answer.text


def test_the_rights_at_a_hub_are_those_that_are_tested(place: Place) -> None:
    [block] = [
        one
        for one in blocks(ROOT / "docs" / "how-to" / "connect-a-jupyterhub.md")
        if one.language == "python"
    ]

    class Hub:
        services: list[object]
        load_roles: list[dict[str, object]]

    class Configuration:
        JupyterHub = Hub

    exec(compile(block.text, block.place, "exec"), {"c": Configuration})  # noqa: S102 - our own page
    [role] = Hub.load_roles
    assert role["scopes"] == list(SCOPES)
