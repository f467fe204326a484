"""How the garbage collector is set for a program that keeps much for long and frees little.

Called once, when the first list of the cluster is held; the benchmark does the same.
"""

from __future__ import annotations

import gc

_YOUNG = 50_000
"""New objects before the collector looks at them; 700 by default. One cycle of 40,000 GPUs makes
some hundred thousand that live for a second, none of them in a circle, and each walk through all
of them stops the event loop for up to 0.1 s."""


def settle() -> None:
    """Leave what is there now alone for good, and look at new objects less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, 20, 50)
