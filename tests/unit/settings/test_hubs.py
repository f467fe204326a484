from __future__ import annotations

import pytest

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.settings.loading import load_settings
from gpu_pruner.settings.schema import Settings

HUB = {"namespace": "jhub", "url": "http://hub.jhub:8081/", "token_file": "/secrets/hub"}


def refusal(*hubs: dict[str, object]) -> str:
    with pytest.raises(ConfigurationError) as refused:
        load_settings({"jupyter_hubs": list(hubs)})
    return str(refused.value)


def test_without_a_hub_nothing_is_asked() -> None:
    assert Settings().jupyter_hubs == ()


def test_a_hub_is_named_by_namespace_address_and_token_file() -> None:
    [hub] = load_settings({"jupyter_hubs": [HUB]}).jupyter_hubs

    assert (hub.namespace, hub.url) == ("jhub", "http://hub.jhub:8081")
    assert str(hub.token_file) == "/secrets/hub"


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"token": "secret-word"}, "jupyter_hubs.0.token"),
        ({"url": "hub.jhub:8081"}, "jupyter_hubs.0.url"),
        ({"url": "http://me:secret-word@hub:8081"}, "jupyter_hubs.0.url"),
        ({"namespace": "Team A"}, "jupyter_hubs.0.namespace"),
        ({"namespace": ""}, "jupyter_hubs.0.namespace"),
        ({"timeout_seconds": 0}, "jupyter_hubs.0.timeout_seconds"),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_without_its_value(
    change: dict[str, object], place: str
) -> None:
    told = refusal(HUB | change)

    assert told.startswith(f"{place}: ")
    assert "secret-word" not in told


def test_a_namespace_has_one_hub() -> None:
    assert "two Hubs for namespace jhub" in refusal(HUB, HUB | {"url": "http://other"})
