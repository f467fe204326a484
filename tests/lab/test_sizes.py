"""Who set a size last, as a real API server writes it down."""

from __future__ import annotations

import json

import msgspec
import pytest
from support.lab import Lab

from gpu_pruner.kube.wire import Owner

pytestmark = [pytest.mark.lab, pytest.mark.timeout(180)]


def sized_by(lab: Lab, team: str) -> str:
    told = lab.kubectl(
        "get", "deployment/server", "-n", team, "-o", "json", "--show-managed-fields"
    )
    return msgspec.json.decode(told, type=Owner).metadata.sized_by


def test_the_manager_that_set_the_size_last_is_told(lab: Lab, team: str) -> None:
    labels = {"app": "server"}
    containers = [{"name": "main", "image": "registry.example/server:1"}]
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "server", "namespace": team},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }
    lab.kubectl(
        "apply", "-f", "-", "--server-side", "--field-manager=team-tool", stdin=json.dumps(body)
    )
    assert sized_by(lab, team) == "team-tool"
    by = "--field-manager=argocd-controller"
    size = ["-n", team, "--type=merge", "-p", '{"spec":{"replicas":1}}']
    lab.kubectl("patch", "deployment/server", by, *size)
    assert sized_by(lab, team) == "argocd-controller"
    note = ["-n", team, "--type=merge", "-p", '{"metadata":{"labels":{"a":"b"}}}']
    lab.kubectl("patch", "deployment/server", "--field-manager=kubectl-edit", *note)
    assert sized_by(lab, team) == "argocd-controller"
    lab.kubectl("scale", "deployment/server", "-n", team, "--replicas=2")
    assert sized_by(lab, team) == "kubectl"
