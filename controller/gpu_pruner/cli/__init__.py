"""Arguments to settings to one call.

`main` is the entry point of the `gpu-pruner` command. It needs the controller's dependencies and
says so where they are missing, because the light base package installs the command too.
"""

from __future__ import annotations

import importlib.util
import sys

_NEEDED = ("click", "kubernetes", "msgspec", "prometheus_api_client", "pydantic", "tornado")


def main() -> None:
    """Run the command line and end the process with its exit code.

    Exit codes: 0 fine, 1 failed, 2 bad input, 3 a check that found something wrong.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        sys.stderr.write(
            f"gpu-pruner: the controller's dependencies are not installed ({', '.join(missing)} "
            "missing); install them with: pip install 'gpu-pruner[controller]'\n"
        )
        sys.exit(1)
    from gpu_pruner.cli.commands import run_command_line  # noqa: PLC0415 - only once they are there

    run_command_line()
