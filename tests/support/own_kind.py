"""A kind of our own, which only the settings know, as the documentation has one added.

Holds its CRD, an object, the role and the admission policy that let our account pause it, and the
words of the settings that say how.
"""

from __future__ import annotations

import json

from support.lab import Lab

from gpu_pruner.kube.resources import Resource
from gpu_pruner.sim.tree import JsonObject, mapping

ROLE_NAME = "servers-for-gpu-pruner"
GROUP = "ml.example.org"
POLICY = "gpu-pruner-nothing-else"
KIND: JsonObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"servers.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": "Server", "plural": "servers", "singular": "server"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "mode": {"type": "string", "enum": ["serving", "stopped"]},
                                    "workers": {"type": "integer", "minimum": 0},
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {"ready": {"type": "integer"}},
                            },
                        },
                    }
                },
            }
        ],
    },
}
SERVER: JsonObject = {
    "apiVersion": f"{GROUP}/v1",
    "kind": "Server",
    "metadata": {"name": "llm", "annotations": {"team": "vision"}},
    "spec": {"mode": "serving", "workers": 3},
}
ROLE: JsonObject = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": ROLE_NAME},
    "rules": [
        {
            "apiGroups": [GROUP],
            "resources": ["servers"],
            "verbs": ["get", "list", "watch", "patch"],
        }
    ],
}
BINDING: JsonObject = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": ROLE_NAME},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": ROLE_NAME,
    },
    "subjects": [
        {"kind": "ServiceAccount", "name": "gpu-pruner", "namespace": "gpu-pruner-system"}
    ],
}
KNOWN = f"""
custom_levers:
- group: {GROUP}
  version: v1
  plural: servers
  kind: Server
"""
SIZE = """
  replicas: spec.workers
"""
PAIR = """
  pause: {spec: {mode: stopped}}
  restore: {spec: {mode: serving}}
  paused_when: spec.mode == "stopped"
  ready_when: status.ready >= spec.workers
"""

SERVERS = Resource(group=GROUP, version="v1", plural="servers", kind="Server")


def apply(lab: Lab, *bodies: JsonObject) -> None:
    for body in bodies:
        lab.kubectl("apply", "-f", "-", stdin=json.dumps(body))


def allow(lab: Lab) -> None:
    """Let our account patch servers, as the documentation says: by a role, and in the policy."""
    apply(lab, ROLE, BINDING)
    policy = json.loads(lab.kubectl("get", "validatingadmissionpolicy", POLICY, "-o", "json"))
    [validation] = policy["spec"]["validations"]
    place = "'apps/deployments',"
    assert place in validation["expression"]
    wider = validation["expression"].replace(place, f"{place} '{GROUP}/servers',", 1)
    patch = json.dumps({"spec": {"validations": [validation | {"expression": wider}]}})
    lab.kubectl("patch", "validatingadmissionpolicy", POLICY, "--type=merge", "-p", patch)


def install_own_kind(lab: Lab) -> None:
    """Install the kind and wait until it is served."""
    apply(lab, KIND)
    lab.kubectl("wait", "--for=condition=Established", f"crd/servers.{GROUP}", "--timeout=60s")


def remove_own_kind(lab: Lab) -> None:
    """Take away the kind and what was allowed for it."""
    lab.kubectl("delete", "clusterrole,clusterrolebinding", ROLE_NAME, "--ignore-not-found")
    lab.kubectl("delete", "crd", f"servers.{GROUP}", "--ignore-not-found")


def a_server(team: str, name: str = "llm") -> JsonObject:
    """Return an object of the kind."""
    meta = mapping(SERVER, "metadata") | {"namespace": team, "name": name}
    return SERVER | {"metadata": meta}
