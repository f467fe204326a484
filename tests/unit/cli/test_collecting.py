from __future__ import annotations

import gc

from gpu_pruner.cli.collecting import settle


def test_what_is_there_is_left_alone_and_new_objects_are_looked_at_less_often() -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    try:
        settle()
        assert gc.get_threshold()[0] > before[0]
        assert gc.get_freeze_count() > frozen
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
