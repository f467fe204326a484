"""Whether a signal can see work on a device at all.

It answers whether a zero of this signal, on this model of GPU, may be believed. New hardware under
an old stack has shown a utilisation of 0 under full load. It never looks at values. `device` asks
it last, about devices that would otherwise be idle.

A meter is trusted where its model is in the table below or in the settings, or where it was seen
to show work.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import lru_cache

from gpu_pruner.model.rules import Rules
from gpu_pruner.model.signals import Meter, Signal

_PROFILED = frozenset(
    {"V100", "T4", "T4G", "A2", "A10", "A10G", "A16", "A30", "A30X", "A40", "A100", "A100X", "A800",
     "L2", "L4", "L20", "L40", "L40G", "L40S", "H20", "H100", "H100L", "H200", "H800", "GH200",
     "B100", "B200", "B300", "GB200", "GB300", "RTX"}
)  # fmt: skip
"""Words in the names of models on which engine activity and utilisation were both seen to work."""

_WITHOUT_PROFILING = frozenset({"K80", "M40", "M60", "P4", "P6", "P40", "P100", "GTX", "TITAN"})
"""Words in the names of older models, on which utilisation was seen to work."""

_WORDS = re.compile(r"[A-Za-z0-9]+")

_VIRTUAL = re.compile(r"GRID|\d+[QCAB]")
"""Words in the names of virtual GPUs, such as ``NVIDIA A40-48Q``: a guest sees its own share."""


def is_proven(
    model: str, signal: Signal, *, rules: Rules, seen: frozenset[Meter] = frozenset()
) -> bool:
    """Whether this signal's zero may be believed on this model.

    Args:
        model: as the exporter names it, for example ``NVIDIA H100 80GB HBM3``; empty: nobody knows.
        signal: a primary signal.
        rules: for the models that the settings add.
        seen: meters that were seen to show work.
    """
    if any(fnmatchcase(model, pattern) for pattern in rules.measurable_models):
        return True
    if is_listed(model, signal):
        return True
    return (model, signal) in seen and not _is_virtual(model)


def is_listed(model: str, signal: Signal) -> bool:
    """Whether the table trusts this signal on this model, so that nothing has to be seen."""
    return signal in _known(model)


@lru_cache(maxsize=256)
def _known(model: str) -> frozenset[Signal]:
    """Return the primary signals that the table trusts on a model; clusters have few models."""
    words = _WORDS.findall(model)
    if _is_virtual(model):
        return frozenset()
    if not _PROFILED.isdisjoint(words):
        return frozenset({Signal.ENGINE, Signal.SM, Signal.UTIL})
    return frozenset() if _WITHOUT_PROFILING.isdisjoint(words) else frozenset({Signal.UTIL})


def _is_virtual(model: str) -> bool:
    return any(_VIRTUAL.fullmatch(word) for word in _WORDS.findall(model))
