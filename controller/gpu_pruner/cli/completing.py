"""How a command's coroutine is run to its end, and becomes an exit code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import NoReturn

import click

_INTERRUPTED, _TERMINATED = 130, 143
"""What a shell tells of a process that SIGINT or SIGTERM has ended."""


def complete(main: Callable[[], Coroutine[None, None, int]]) -> NoReturn:
    """Run a command's coroutine to its end and leave with its exit code."""
    try:
        code = asyncio.run(main())
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except asyncio.CancelledError:  # nothing but SIGTERM cancels a command as a whole
        code = _TERMINATED
    raise click.exceptions.Exit(code)
