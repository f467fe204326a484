"""Controllers that do one thing wrong, to be run in the controller's place by the demo.

Usage: python sabotage.py pauses-at-once|never-pauses|forgets-the-size run ...

Each is the real controller with one function replaced; the demo must notice every one of them
from what the API server saw.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from gpu_pruner.act import pause_record
from gpu_pruner.cli import main
from gpu_pruner.model.rules import Mode
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


SABOTAGE = {
    "pauses-at-once": pauses_at_once,
    "never-pauses": never_pauses,
    "forgets-the-size": forgets_the_size,
}

if __name__ == "__main__":
    SABOTAGE[sys.argv.pop(1)]()
    main()
