"""Plays Kueue for Jobs, as far as a pause has to do with it.

A Job with a queue has a Workload, which it owns (kubernetes-sigs/kueue, `jobframework`,
`reconciler.go`). While that is active it is admitted, here at once, and the Job is unsuspended,
whoever suspended it; one that is not active is evicted, and its Job suspended
(`workload_controller.go`, `jobframework` `stopJob`).
"""

from __future__ import annotations

from collections.abc import Iterable

from support.operating import Part, Server, name_of, owned

from gpu_pruner.sim.tree import JsonObject, child, mapping, text, texts

QUEUE = "kueue.x-k8s.io/queue-name"
"""The label of what Kueue looks after."""


def workload_name(job: str) -> str:
    """Return what the Workload of a Job is called here."""
    return f"job-{job}"


def job(server: Server, one: JsonObject) -> Iterable[Part]:
    """Let a Job with a queue run, or not, as its Workload says."""
    queue = texts(one, "metadata", "labels").get(QUEUE)
    if queue is None:
        return
    name, namespace = workload_name(name_of(one)), text(one, "metadata", "namespace")
    pods = [{"name": "main", "count": 1, "template": mapping(one, "spec", "template")}]
    yield Part(owned(one, "Workload", name, {"queueName": queue, "podSets": pods}))
    workload = server.get("Workload", namespace, name)
    if workload is None:
        return
    stopped = child(workload, "spec", "active") is False
    if stopped is not (child(one, "spec", "suspend") is True):
        server.patch(one, {"spec": {"suspend": stopped}})
