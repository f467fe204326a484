"""Controllers that do one thing wrong, to be run in the controller's place by the demo.

Usage: python sabotage.py WHICH run ..., WHICH as in `SABOTAGE`.

Each is the real controller with one function replaced; the demo must notice every one of them
from what the API server saw.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace

from gpu_pruner.act import pause_record
from gpu_pruner.cli import main
from gpu_pruner.decide.signals import SIGNALS
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.signals import Signal
from gpu_pruner.resolve import wishes
from gpu_pruner.settings.schema import Settings


def pauses_at_once():
    honest = Settings.rules
    Settings.rules = lambda self: replace(honest(self), notice_seconds=0.0)


def never_pauses():
    honest = Settings.rules
    Settings.rules = lambda self: replace(honest(self), mode=Mode.DRY_RUN)


def forgets_the_size():
    honest = pause_record.encode
    pause_record.encode = lambda record: honest(replace(record, replicas=record.replicas and 1))
    for module in list(sys.modules.values()):
        if getattr(module, "encode", None) is honest:
            module.encode = pause_record.encode


def hears_no_keep():
    wishes._keep = lambda *_given, **_named: None


def sees_no_encoder():
    deaf = replace(SIGNALS[Signal.ENCODER], active_from=math.inf)
    SIGNALS[Signal.ENCODER] = deaf


SABOTAGE = {
    "hears-no-keep": hears_no_keep,
    "sees-no-encoder": sees_no_encoder,
    "pauses-at-once": pauses_at_once,
    "never-pauses": never_pauses,
    "forgets-the-size": forgets_the_size,
}

if __name__ == "__main__":
    SABOTAGE[sys.argv.pop(1)]()
    main()
