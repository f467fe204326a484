"""A kind that only the settings know, in a real cluster: the whole line, as the settings say."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.forgotten import forget
from support.lab import Lab
from support.own_kind import (
    GROUP,
    KNOWN,
    PAIR,
    SERVER,
    SIZE,
    a_server,
    allow,
    install_own_kind,
    remove_own_kind,
)
from support.product import BASE, OURS, Product, Thing, a_world, phases, record, told, until

from gpu_pruner.model.annotations import PAUSED
from gpu_pruner.sim.tree import JsonObject, child, mapping

pytestmark = [pytest.mark.lab, pytest.mark.prometheus, pytest.mark.timeout(300)]

_POLICY_SECONDS = 60.0
"""A server follows a changed policy within seconds."""


@pytest.fixture(autouse=True)
def _as_it_was(lab: Lab) -> Iterator[None]:
    install_own_kind(lab)
    yield
    remove_own_kind(lab)
    lab.kubectl("apply", "-k", BASE)


def until_allowed(lab: Lab, team: str) -> None:
    """Wait until the API server would let our account pause it; changes nothing."""
    deadline = time.monotonic() + _POLICY_SECONDS
    what = ("-n", team, "--type=merge", "-p", '{"spec":{"workers":0}}')
    while True:
        try:
            lab.kubectl("patch", f"servers.{GROUP}/llm", *what, f"--as={OURS}", "--dry-run=server")
        except RuntimeError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
        else:
            return


@pytest.mark.parametrize(
    ("words", "change", "stopped"),
    [
        pytest.param(SIZE, {"workers": 0}, {"mode": "serving", "workers": 0}, id="a-size"),
        pytest.param(PAIR, {"mode": "stopped"}, {"mode": "stopped", "workers": 3}, id="a-pair"),
    ],
)
def test_it_is_warned_paused_gone_and_resumed_as_the_settings_say(
    lab: Lab, team: str, tmp_path: Path, words: str, change: JsonObject, stopped: JsonObject
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text(KNOWN + words)
    config = ("--config", str(settings))
    ref = f"server/{team}/llm"
    with Product(lab, a_world(), tmp_path, things=[Thing(a_server(team), pods=3)]) as product:
        allow(lab)
        until_allowed(lab, team)
        lab.audit.mark()
        before = product.uids(team)
        with product.controller(*config) as controller:
            controller.until_told(ref, state="Warned")
            assert product.workload_writes() == []
            assert product.uids(team) == before

            controller.until_told(ref, state="Paused")
            assert product.pods(team) == []
            assert mapping(product.object(ref), "spec") == stopped
            [pause] = product.workload_writes()
            assert (pause.verb, pause.object_ref.api_group) == ("patch", GROUP)
            assert mapping(pause.request_object, "spec") == change
            assert record(pause)["lever"] == "Server"

            forget(product, team)
            controller.until_told(ref, state="Paused")
            product.by_hand("resume", ref, *config)
            controller.until_told(ref, state="Watching")
            until(lambda: product.ready(team) == 3)

        writes = product.writes()
        assert [one.told for one in writes if one.is_refused] == []
        assert phases(writes) == [
            *("Nominated", "Warned", "Pausing", "Paused", "Paused", "Watching")
        ]
        assert told(writes) == ["GpuIdleWarning", "GpuIdlePaused", "GpuIdleRestored"]
        assert [one.told for one in product.workload_writes()] == [pause.told]
        assert mapping(product.object(ref), "spec") == child(SERVER, "spec")
        assert PAUSED not in product.annotations(ref)
        assert product.annotations(ref)["team"] == "vision"
