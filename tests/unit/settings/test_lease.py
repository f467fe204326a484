from __future__ import annotations

import pytest

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.settings.loading import load_settings
from gpu_pruner.settings.schema import Settings


def test_the_defaults_are_those_of_kubernetes_own_controllers() -> None:
    lease = Settings().lease
    times = (lease.duration_seconds, lease.renew_deadline_seconds, lease.retry_seconds)
    assert times == (15.0, 10.0, 2.0)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"renew_deadline_seconds": 15}, "do not fit together"),
        ({"duration_seconds": 10}, "do not fit together"),
        ({"retry_seconds": 5}, "do not fit together"),
        ({"duration_seconds": 15.5}, "must be whole"),
        ({"retry_seconds": 0}, "greater than 0"),
        ({"name": "no/name"}, "must have the form"),
        ({"namespace": "../other"}, "must have the form"),
        ({"identity": ""}, "at least 1"),
    ],
)
def test_what_would_let_two_act_or_none_is_refused(wrong: dict[str, object], why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        load_settings({"lease": wrong})
