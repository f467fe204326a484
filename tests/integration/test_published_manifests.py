"""The manifests that the Rust tool's repositories publish, started as they are, do what they say.

Only addresses are other ones: of Prometheus, and of our own listener. The waits are shortened by
the environment, which the manifests do not use for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml
from support.caller import Caller
from support.prometheus import free_port
from support.prometheus_line import IDLE, KEPT, Line, line

PUBLISHED = yaml.safe_load(
    (Path(__file__).parents[1] / "settings" / "rust_tool" / "published.yaml").read_text("utf-8")
)
HURRY = {
    "GPU_PRUNER_NOTICE_SECONDS": "6s",
    "GPU_PRUNER_CYCLE_SECONDS": "2s",
    "GPU_PRUNER_SETTLE_SECONDS": "0s",
}
WRITTEN_BEFORE_A_PAUSE = {"gpuworkloads", "events", "leases"}

pytestmark = [pytest.mark.timeout(240), pytest.mark.prometheus]


def here(arguments: Sequence[str], *, prometheus: str, port: int) -> list[str]:
    """Return arguments with our addresses in the place of theirs."""
    ours = [re.sub(r"^(--prometheus-url)=.*", rf"\1={prometheus}", one) for one in arguments]
    listening = [re.sub(r"^(--metrics-addr)=.*", rf"\1=127.0.0.1:{port}", one) for one in ours]
    assert len(listening) == len(arguments)
    return listening


def sizes(it: Line) -> Mapping[str, object]:
    found: dict[str, object] = {}
    for ref in sorted(IDLE | KEPT):
        kind, namespace, name = ref.split("/")
        stored = it.cluster.get(kind, namespace=namespace, name=name)
        stopped = "kubeflow-resource-stopped" in stored["metadata"].get("annotations", {})
        found[ref] = "stopped" if stopped else stored["spec"].get("replicas", "running")
    return found


@pytest.mark.parametrize("manifest", PUBLISHED, ids=lambda one: one["name"])
async def test_it_pauses_what_is_idle_and_nothing_else(manifest, tmp_path):
    honors = "--honor-labels" in manifest["args"]
    async with line(tmp_path, honor_labels=honors) as it:
        before, port = sizes(it), free_port()
        process = await it.run(
            *here(manifest["args"], prometheus=it.prometheus, port=port),
            environ={"GPU_PRUNER_LISTEN_PORT": str(port), **HURRY, **manifest["env"]},
        )
        try:
            await it.until(lambda: {k for k, v in it.phases().items() if v == "Paused"} >= IDLE)
            caller = Caller(f"http://127.0.0.1:{port}")
            try:
                answer = await caller.get("/metrics", accept="text/plain")
            finally:
                await caller.close()
        finally:
            process.terminate()
            assert await process.wait() == 0, it.log.read_text()[-3000:]
        after = sizes(it)
    assert "gpu_pruner_scale_successes_total 3.0" in answer.raw.decode()
    assert {ref for ref in before if after[ref] != before[ref]} == IDLE
    assert {after[ref] for ref in IDLE} == {0, "stopped"}
    touched = {name for kind, name in it.writes() if kind not in WRITTEN_BEFORE_A_PAUSE}
    assert touched == {ref.partition("/")[2] for ref in IDLE}
    log = it.log.read_text()
    assert all(f"{one} has no effect" in log for one in manifest["without_effect"])
    assert "canary" not in log
