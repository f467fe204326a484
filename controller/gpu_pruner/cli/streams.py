"""Standard streams that were closed before we began (`>&-`).

Python has None in their place, and the next file or connection that is opened gets their number.
Called once, before anything is read or printed.
"""

from __future__ import annotations

import os
import sys
from typing import TextIO


def replace_closed_streams() -> None:
    """Put something in the place of each: silence for input and errors, a broken pipe for results.

    So a result that has nowhere to go ends the command as one does that nobody reads any more.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123 - until we end
    if sys.stdout is None:
        sys.stdout = _pipe_without_reader()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - until we end


def _pipe_without_reader() -> TextIO:
    reading, writing = os.pipe()
    os.close(reading)
    lowest = os.dup(writing)  # the number of standard output, which nothing else is to get
    os.close(writing)
    return open(lowest, "w", encoding="utf-8")  # noqa: PTH123 - until we end
