from __future__ import annotations

from pathlib import Path

import pytest

from gpu_pruner.act.levers import LEVER_KINDS
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.model import jupyterhub
from gpu_pruner.settings.levers import KINDS
from gpu_pruner.settings.loading import load_settings

SIZED: dict[str, object] = {
    "group": "ml.example.org",
    "version": "v1",
    "plural": "servers",
    "kind": "Server",
    "replicas": "spec.workers",
}
PAIR: dict[str, object] = {
    **SIZED,
    "replicas": None,
    "pause": {"spec": {"mode": "stopped"}},
    "restore": {"spec": {"mode": "serving"}},
    "paused_when": 'spec.mode == "stopped"',
    "ready_when": "status.ready >= 1",
}


def test_every_kind_of_the_settings_has_a_lever_and_the_other_way_round() -> None:
    assert LEVER_KINDS | {jupyterhub.KIND} == KINDS


@pytest.mark.parametrize("lever", [SIZED, PAIR])
def test_a_lever_of_the_settings_is_a_kind_of_the_rules(lever: dict[str, object]) -> None:
    rules = load_settings(
        {"custom_levers": [lever | {"owns": ["Pod", "apps/StatefulSet"]}]}
    ).rules()
    made = frozenset({("", "Pod"), ("apps", "StatefulSet")})
    assert rules.custom_kinds == {("ml.example.org", "Server"): made}


@pytest.mark.parametrize(
    ("lever", "says"),
    [
        (SIZED | {"replicas": "status.workers"}, "replicas: a size that can be set is below spec"),
        (SIZED | {"replicas": "workers"}, "replicas: 'workers' is not a path"),
        (SIZED | {"replicas": None}, "without replicas: pause, restore"),
        (SIZED | {"paused_when": "spec.workers == 0"}, "give either replicas, or pause"),
        (SIZED | {"kind": "Deployment"}, "Deployment has a lever already"),
        (SIZED | {"kind": "server"}, "kind: must have the form"),
        (SIZED | {"group": "apps"}, "group: must have the form"),
        (SIZED | {"owns": ["pods"]}, "owns: 'pods' is not a kind"),
        (SIZED | {"owns": []}, "owns: must have at least 1 item"),
        (SIZED | {"ready_when": "yes"}, "ready_when: 'yes' does not compare"),
        (SIZED | {"scale": 1}, "scale: is no setting"),
        (PAIR | {"ready_when": None}, "without replicas: pause, restore"),
        (PAIR | {"pause": {}}, "pause: a patch changes spec, or metadata.annotations"),
        (PAIR | {"pause": {"status": {}}}, "pause: a patch changes spec"),
        (PAIR | {"restore": {"metadata": {"labels": {}}}}, "restore: of metadata, a patch changes"),
        (
            PAIR | {"pause": {"metadata": {"annotations": {"gpu-pruner.io/paused": "x"}}}},
            "pause: gpu-pruner.io/paused is an annotation of ours",
        ),
    ],
)
def test_what_cannot_work_is_refused_at_the_start_with_its_place(
    lever: dict[str, object], says: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load_settings({"custom_levers": [PAIR | {"kind": "Other"}, lever]})
    assert str(refused.value).startswith("custom_levers.1")
    assert says in str(refused.value)


def test_two_levers_for_one_kind_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="custom_levers: two levers for Server"):
        load_settings({"custom_levers": [SIZED, PAIR]})


FILE = """
window_seconds: 1h
kubernetes:
  context: lab
  timeout_seconds: 3
custom_levers:
- {group: ml.example.org, version: v1, plural: servers, kind: Server, replicas: spec.workers}
"""


def test_a_file_says_what_flags_do_not(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(FILE)
    flags = {
        "window_seconds": 600,
        "kubernetes": {"context": None},
        "scrape": {"timeout_seconds": 5},
    }
    found = load_settings(flags, file=file)
    assert found.window_seconds == 600
    assert (found.kubernetes.context, found.kubernetes.timeout_seconds) == ("lab", 3)
    assert found.scrape.timeout_seconds == 5
    assert [one.kind for one in found.custom_levers] == ["Server"]
    file.write_text("")
    assert load_settings({}, file=file) == load_settings({})


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"[1]", "must hold names of settings"),
        (b"1: 2", ":1:1: 1: is no setting"),
        (b"a: b\n\t- c: [s3cret", r":2:1: is indented with a tab"),
        (b"\xff\xfe\xff", "is not UTF-8"),
        (b"window: 1h", ":1:1: window: is no setting"),
    ],
)
def test_an_unusable_file_is_refused_without_repeating_it(
    tmp_path: Path, content: bytes, says: str
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_bytes(content)
    with pytest.raises(ConfigurationError, match=says) as refused:
        load_settings({}, file=file)
    assert "s3cret" not in str(refused.value)
    with pytest.raises(ConfigurationError, match="No such file"):
        load_settings({}, file=tmp_path / "none.yaml")
