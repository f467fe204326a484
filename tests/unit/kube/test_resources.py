"""Paths are those of the API server."""

from __future__ import annotations

import pytest

from gpu_pruner.kube.resources import (
    ALL,
    DEPLOYMENTS,
    GPUWORKLOADS,
    NODES,
    PODS,
    Resource,
    group_of,
    resource_for,
)


@pytest.mark.parametrize(
    ("resource", "parts", "path"),
    [
        (PODS, {}, "/api/v1/pods"),
        (PODS, {"namespace": "a"}, "/api/v1/namespaces/a/pods"),
        (PODS, {"namespace": "a", "name": "b"}, "/api/v1/namespaces/a/pods/b"),
        (NODES, {"name": "n"}, "/api/v1/nodes/n"),
        (NODES, {"name": "n", "namespace": "ignored"}, "/api/v1/nodes/n"),
        (
            GPUWORKLOADS,
            {"namespace": "a", "name": "b", "subresource": "status"},
            "/apis/gpu-pruner.io/v1alpha1/namespaces/a/gpuworkloads/b/status",
        ),
    ],
)
def test_paths(resource: Resource, parts: dict[str, str], path: str) -> None:
    assert resource.path(**parts) == path


@pytest.mark.parametrize(
    "parts",
    [
        {"name": "without-namespace"},
        {"namespace": "a", "subresource": "status"},
        {"namespace": "..", "name": "b"},
        {"namespace": "a", "name": ".."},
    ],
)
def test_what_makes_no_path_is_refused(parts: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="name"):
        DEPLOYMENTS.path(**parts)


def test_kinds_are_told_apart_by_group() -> None:
    assert resource_for("apps", "Deployment") is DEPLOYMENTS
    assert resource_for("other.io", "Deployment") is None
    assert len({(one.group, one.kind) for one in ALL}) == len(ALL)


@pytest.mark.parametrize(
    ("api_version", "group"), [("v1", ""), ("apps/v1", "apps"), ("", ""), ("a.b/v1/x", "a.b")]
)
def test_the_group_of_an_api_version(api_version: str, group: str) -> None:
    assert group_of(api_version) == group
