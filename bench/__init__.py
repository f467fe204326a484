"""How fast the controller is, as figures with goals: `make bench`.

One module per figure; each has `measure`, which returns its figures. Nothing here is a test: a
missed goal is printed as missed and ends nothing, because a loaded machine is no defect.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The tests' own worlds and servers serve here too; pytest finds them in the same way.
sys.path.append(str(Path(__file__).parents[1] / "tests"))
