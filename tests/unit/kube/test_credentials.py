"""Where the API server is looked for, and what is said when it is nowhere."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from kubernetes.aio.config import incluster_config
from support.scripted_api import kubeconfig

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.kube.credentials import Credentials
from gpu_pruner.settings.schema import KubernetesSettings


def write(path: Path, host: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kubeconfig(f"http://{host}")), encoding="utf-8")
    return path


async def host(settings: KubernetesSettings, environment: dict[str, str]) -> str:
    found = await Credentials.load(settings, environment=environment)
    return str(found.configuration.host)


async def test_the_settings_file_wins_over_the_environment(tmp_path: Path) -> None:
    mine, other = write(tmp_path / "mine", "mine"), write(tmp_path / "other", "other")
    environment = {"KUBECONFIG": str(other), "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert await host(KubernetesSettings(kubeconfig=mine), environment) == "http://mine"


async def test_the_environment_wins_over_the_cluster_and_may_name_several_files(
    tmp_path: Path,
) -> None:
    other = write(tmp_path / "other", "other")
    named = os.pathsep.join([str(tmp_path / "absent"), str(other)])
    environment = {"KUBECONFIG": named, "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert await host(KubernetesSettings(), environment) == "http://other"


async def test_the_usual_kubeconfig_serves_outside_a_cluster(tmp_path: Path) -> None:
    write(tmp_path / ".kube" / "config", "usual")
    assert await host(KubernetesSettings(), {"HOME": str(tmp_path)}) == "http://usual"


async def test_a_context_asks_for_the_usual_kubeconfig_even_in_a_cluster(tmp_path: Path) -> None:
    write(tmp_path / ".kube" / "config", "usual")
    environment = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert await host(KubernetesSettings(context="here"), environment) == "http://usual"


async def test_nothing_configured_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"set kubernetes\.kubeconfig or KUBECONFIG"):
        await Credentials.load(KubernetesSettings(), environment={"HOME": str(tmp_path)})


async def test_a_cluster_without_a_service_account_says_so(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    with pytest.raises(ConfigurationError, match="in-cluster"):
        await Credentials.load(KubernetesSettings(), environment=environment)


async def test_a_cluster_with_a_service_account_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, constant in (("token", "SERVICE_TOKEN_FILENAME"), ("ca", "SERVICE_CERT_FILENAME")):
        (tmp_path / name).write_text(name, encoding="utf-8")
        monkeypatch.setattr(incluster_config, constant, str(tmp_path / name))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    environment = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert await host(KubernetesSettings(), environment) == "https://10.0.0.1:443"


async def test_a_missing_file_is_named(tmp_path: Path) -> None:
    settings = KubernetesSettings(kubeconfig=tmp_path / "absent")
    with pytest.raises(ConfigurationError, match="absent: no such kubeconfig"):
        await Credentials.load(settings)


async def test_an_unknown_context_is_named(tmp_path: Path) -> None:
    settings = KubernetesSettings(kubeconfig=write(tmp_path / "mine", "mine"), context="prod")
    with pytest.raises(ConfigurationError, match="with the context 'prod'"):
        await Credentials.load(settings)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "a: [",
        "null",
        "just words",
        "current-context: here",
        "\x00",
        pytest.param("x: " + "{a: " * 5_000, id="too deep"),
        '{"current-context": "here", "contexts": 7, "users": 7, "clusters": 7}',
        '{"current-context": "here", "contexts": [{"name": "here"}], "users": [], "clusters": []}',
        json.dumps(
            {
                "current-context": "here",
                "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c"}],
                "users": [{"name": "u", "user": {"token": "t0psecret"}}],
            }
        ),
        json.dumps(
            {
                "current-context": "here",
                "contexts": [{"name": "here", "token": "t0psecret"}],
                "clusters": [],
                "users": [],
            }
        ),
    ],
)
async def test_a_malformed_file_is_named_without_its_content(tmp_path: Path, content: str) -> None:
    path = tmp_path / "mine"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        await Credentials.load(KubernetesSettings(kubeconfig=path))
    assert caught.value.path == str(path)
    assert "t0psecret" not in str(caught.value)
    assert caught.value.__cause__ is None
