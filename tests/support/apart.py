"""What the documentation shows and no test types, each with why; and what is the demo's.

A block is run, written as a file, checked in its own way, or stands here: `tests/test_docs.py`
holds every page to it.
"""

from __future__ import annotations

from collections.abc import Mapping

from support.pages import Block

_INSTALLS = "asks a package index; tests/integration/test_wheel.py installs what is built from here"
_IN_A_POD = "needs a container: the pods of the lab are reported by a fake kubelet and run nothing"
_HUB = "needs a JupyterHub; tests/lab/test_product_jupyterhub.py does it with a real one"

APART: Mapping[str, str] = {
    "make test     # the tests": "runs these tests",
    "python3 -m venv .venv": _INSTALLS,
    ".venv/bin/pip install -c constraints.txt '.[controller]'": _INSTALLS,
    "kubectl -n monitoring port-forward service/prometheus-operated 9090 &": _IN_A_POD,
    "kubectl -n gpu-pruner-system exec deploy/gpu-pruner -- gpu-pruner check "
    "--prometheus-url http://prometheus.monitoring:9090": _IN_A_POD,
    "kubectl -n gpu-pruner-system logs deployment/gpu-pruner": _IN_A_POD,
    "gpu-pruner explain jupyterserver/jhub/jupyter-alice": _HUB,
    "kubectl annotate pod jupyter-alice -n jhub gpu-pruner.io/exempt=true": _HUB,
    "gpu-pruner resume jupyterserver/jhub/jupyter-alice": _HUB,
    "gpu-pruner resume deployment/team-a/train --wrong 'it was training, on the encoder alone'": (
        "takes a pause by what was measured; tests/lab/test_product_wrong.py types the like"
    ),
}
"""Commands, as they are typed."""

READ_ONLY: Mapping[str, str] = {
    "dockerfile": "needs a container runtime; tests/integration/test_wheel.py installs the same",
    "text": "told in prose, or compared by a test of its own",
    "promql": "asked of a real Prometheus in tests/lab/test_documented_commands.py",
    "python": "executed in the test that follows its page",
}
"""Languages of blocks that are neither typed nor written."""

TOLD_ELSEWHERE: Mapping[str, str] = {
    "In another shell:": "tests/integration/test_documented_demo.py",
    "settings reloaded": "tests/integration/test_reload.py",
    "2026-11-24T14:24:00Z to": "tests/integration/test_backtest.py",
}
"""Printed beside the commands of a page: how it begins, and the test that compares it."""

DEMO_PAGES = ("look-at-the-demo.md", "play-a-world.md")
CHANNELS_PAGE = "tell-people.md"
"""Followed beside servers that take messages, in tests/integration/test_notify_test.py."""
DEMO_SECTION = ("README.md", "Two commands")


def is_of_the_demo(block: Block) -> bool:
    """Return whether a block is followed beside the demo, in tests/integration."""
    return block.page.name in DEMO_PAGES or (block.page.name, block.section) == DEMO_SECTION
