"""What ends a command from outside: SIGTERM, and the end of standard input.

Both only call what they are given; the command then ends in its own orderly way.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.settings.environment import ENDS_WITH_STDIN

_STDIN = 0
_AT_ONCE = 4096
"""Bytes read at a time; nobody is expected to send any."""


def call_at_the_end_of_stdin(act: Callable[[], object]) -> None:
    """Have the event loop call `act` once, when nobody holds the other end of our input any more.

    Raises:
        ConfigurationError: standard input is closed, or a file, of which no end is told.
    """
    loop = asyncio.get_running_loop()

    def look() -> None:
        if not os.read(_STDIN, _AT_ONCE):
            loop.remove_reader(_STDIN)
            act()

    try:
        loop.add_reader(_STDIN, look)
    except OSError:
        told = "standard input is no pipe; give it one, or unset the variable"
        raise ConfigurationError(told, path=ENDS_WITH_STDIN) from None


@contextmanager
def cancelled_by_sigterm() -> Iterator[None]:
    """Have SIGTERM cancel the running task in this block, so that it cleans up as after Ctrl-C."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    if task is None:
        raise RuntimeError("only a task can be cancelled")
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
