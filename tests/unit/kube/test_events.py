"""Events are what an API server accepts, and the same occasion has the same name."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from gpu_pruner.kube.events import EventType, event_body
from gpu_pruner.model.workload import RootRef

ROOT = RootRef("Deployment", "team-a", "train", "apps", "0a1b2c3d")
NOON = 1_769_860_800.0


def name(root: RootRef = ROOT, reason: str = "GpuIdle", at: float = NOON, key: str = "") -> str:
    meta = event_body(root, reason, message="m", at=at, key=key)["metadata"]
    assert isinstance(meta, dict)
    return str(meta["name"])


def test_an_event_is_about_the_root_in_its_namespace() -> None:
    body = event_body(ROOT, "GpuIdle", message="idle", at=NOON, event_type=EventType.WARNING)
    assert body["involvedObject"] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "namespace": "team-a",
        "name": "train",
        "uid": "0a1b2c3d",
    }
    assert body["type"] == "Warning"
    assert body["firstTimestamp"] == body["lastTimestamp"] == "2026-01-31T12:00:00Z"
    assert json.loads(json.dumps(body)) == body


def test_texts_are_cut_to_what_the_server_takes() -> None:
    body = event_body(ROOT, "R" * 500, message="é" * 5000, at=NOON)
    assert len(str(body["reason"])) == 128
    assert len(str(body["message"])) == 1024
    assert str(body["message"]).endswith("…")


def test_the_name_is_the_occasions() -> None:
    assert name(key="decision-1") == name(key="decision-1", at=NOON + 60)
    others = {
        name(key="decision-1"),
        name(key="decision-2"),
        name(reason="Paused", key="decision-1"),
        name(replace(ROOT, uid="other"), key="decision-1"),
        name(),
        name(at=NOON + 1),
    }
    assert len(others) == 6


def test_the_name_is_a_valid_one_for_any_root() -> None:
    for root_name in ("x" * 253, "a." * 100 + "b", "n" * 199 + "." + "m"):
        made = name(replace(ROOT, name=root_name))
        assert len(made) <= 253
        assert re.fullmatch(
            r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", made
        )
