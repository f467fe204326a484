"""Run the race and print its table: ``python tests/race/run.py [worlds]``. Takes minutes."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from race.table import contest, lines


def main(words: list[str]) -> None:
    """Print the table of as many worlds as asked for."""
    count = int(words[0]) if words else 100
    with tempfile.TemporaryDirectory() as directory:
        results = asyncio.run(contest(Path(directory), range(count)))
    for line in lines(results):
        print(line)  # noqa: T201 - it is what this program is for


if __name__ == "__main__":
    main(sys.argv[1:])
