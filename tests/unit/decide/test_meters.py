from __future__ import annotations

import pytest
from support.story import told_rules

from gpu_pruner.decide.meters import is_proven
from gpu_pruner.model.signals import Signal

RULES = told_rules()


@pytest.mark.parametrize(
    ("model", "engine", "util"),
    [
        ("NVIDIA H100 80GB HBM3", True, True),
        ("NVIDIA A100-SXM4-80GB", True, True),
        ("NVIDIA L40S", True, True),
        ("Tesla V100-SXM2-16GB", True, True),
        ("NVIDIA GB200", True, True),
        ("NVIDIA GeForce RTX 4090", True, True),
        ("Tesla M60", False, True),
        ("Tesla P100-PCIE-16GB", False, True),
        ("NVIDIA GB10", False, False),
        ("AMD Instinct MI300X", False, False),
        ("NVIDIA A40-48Q", False, False),
        ("GRID T4-16Q", False, False),
        ("", False, False),
    ],
)
def test_a_model_of_the_table_is_believed(
    model: str,
    engine: bool,  # noqa: FBT001 - columns of the table above
    util: bool,  # noqa: FBT001 - columns of the table above
) -> None:
    assert is_proven(model, Signal.ENGINE, rules=RULES) is engine
    assert is_proven(model, Signal.UTIL, rules=RULES) is util


def test_the_settings_add_models() -> None:
    rules = told_rules({"measurable_models": ("NVIDIA GB1*",)})
    assert is_proven("NVIDIA GB10", Signal.UTIL, rules=rules)
    assert not is_proven("NVIDIA GB20", Signal.UTIL, rules=rules)
    assert is_proven("", Signal.UTIL, rules=told_rules({"measurable_models": ("*",)}))


def test_work_that_was_seen_proves_this_signal_on_this_model_only() -> None:
    seen = frozenset({("NVIDIA GB10", Signal.UTIL)})
    assert is_proven("NVIDIA GB10", Signal.UTIL, rules=RULES, seen=seen)
    assert not is_proven("NVIDIA GB10", Signal.ENGINE, rules=RULES, seen=seen)
