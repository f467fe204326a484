from __future__ import annotations

import pytest

from gpu_pruner.model.book import PauseRecord
from gpu_pruner.model.commands import exempt_command, resume_command
from gpu_pruner.model.workload import RootRef


def pause(lever: str, **more: object) -> PauseRecord:
    known: dict[str, object] = {"replicas": None, "uid": "u", "generation": 1, "at": 0.0}
    return PauseRecord(lever=lever, decision="d", why="idle", **(known | more))  # type: ignore[arg-type] - told by name


@pytest.mark.parametrize(
    ("kind", "group", "record", "line"),
    [
        ("Deployment", "apps", None, "kubectl scale deployment one -n team-a --replicas=N"),
        (
            "LeaderWorkerSet",
            "leaderworkerset.x-k8s.io",
            pause("LeaderWorkerSet", replicas=2),
            "kubectl scale leaderworkerset.leaderworkerset.x-k8s.io one -n team-a --replicas=2",
        ),
        (
            "Notebook",
            "kubeflow.org",
            pause("Notebook"),
            "kubectl annotate notebook.kubeflow.org one -n team-a kubeflow-resource-stopped-",
        ),
        (
            "InferenceService",
            "serving.kserve.io",
            pause("InferenceService"),
            (
                "kubectl annotate inferenceservice.serving.kserve.io one -n team-a "
                "serving.kserve.io/stop-"
            ),
        ),
        (
            "InferenceService",
            "serving.kserve.io",
            pause("InferenceService", replicas=2),
            (
                "kubectl patch inferenceservice.serving.kserve.io one -n team-a --type merge "
                """-p '{"spec":{"predictor":{"minReplicas":2}}}'"""
            ),
        ),
        (
            "Workspace",
            "kubeflow.org",
            pause("Workspace"),
            (
                "kubectl patch workspace.kubeflow.org one -n team-a --type merge "
                """-p '{"spec":{"paused":false}}'"""
            ),
        ),
        (
            "Job",
            "batch",
            pause("Workload", name="job-1"),
            (
                "kubectl patch workload.kueue.x-k8s.io job-1 -n team-a --type merge "
                """-p '{"spec":{"active":true}}'"""
            ),
        ),
        (
            "Deployment",
            "apps",
            pause("ScaledObject", name="scaler"),
            (
                "kubectl annotate scaledobject.keda.sh scaler -n team-a "
                "autoscaling.keda.sh/paused-replicas-"
            ),
        ),
        (
            "Deployment",
            "apps",
            pause(
                "ScaledObject",
                name="scaler",
                former={"autoscaling.keda.sh/paused-replicas": "2; rm"},
            ),
            (
                "kubectl annotate scaledobject.keda.sh scaler -n team-a "
                "autoscaling.keda.sh/paused-replicas='2; rm' --overwrite"
            ),
        ),
        (
            "JupyterServer",
            "hub.jupyter.org",
            pause("JupyterServer"),
            "start the server in JupyterHub",
        ),
    ],
)
def test_people_are_told_the_line_that_fits_the_kind(
    kind: str, group: str, record: PauseRecord | None, line: str
) -> None:
    root = RootRef(kind, "team-a", "one", group, "uid-1")
    assert resume_command(root, pause=record) == line


def test_an_exemption_is_written_where_it_lasts() -> None:
    deployment = RootRef("Deployment", "team-a", "one", "apps", "uid-1")
    server = RootRef("JupyterServer", "team-a", "jupyter-alice", "hub.jupyter.org", "uid-2")

    assert exempt_command(deployment, object_name="deployment-one-uid1") == (
        "kubectl annotate deployment one -n team-a gpu-pruner.io/exempt=true --overwrite"
    )
    assert exempt_command(server, object_name="jupyterserver-jupyter-alice-uid2") == (
        "kubectl patch gpw jupyterserver-jupyter-alice-uid2 -n team-a --type merge "
        """-p '{"spec":{"exempt":true}}'"""
    )
