"""Answers of the past, kept on disk: what was asked of a closed stretch of time is not asked again.

One file per question, named by a hash of the server, the question and its range, written beside
its place and moved there, so that nobody ever reads half of one. A file that cannot be read counts
as missing. It knows nothing of metrics. Called by `prometheus_past` only.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TypeAlias

import msgspec

from gpu_pruner.model.units import DAY, Seconds

KEPT: Seconds = 30 * DAY
"""Files that were not read for so long are deleted: nobody asks about that time any more."""

_FORMAT = "1"
"""Of the files; another one is another name, so that old files are never misread."""

Rows: TypeAlias = list[tuple[bytes, bytes]]
"""Labels and points of each series of an answer, as JSON."""


class _File(msgspec.Struct, gc=False, array_like=True):
    points: list[bytes]
    """Each distinct one once: most series of an answer say the same."""
    series: list[tuple[bytes, int]]


_READ = msgspec.msgpack.Decoder(_File)


def default_folder() -> Path:
    """Return where answers are kept: in the user's cache, as the XDG base directories say."""
    told = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(told) if Path(told).is_absolute() else Path.home() / ".cache"
    return base / "gpu-pruner" / "backtest"


class AnswerCache:
    """A folder of answers. Without a folder it keeps nothing."""

    def __init__(self, folder: Path | None) -> None:
        """Open it, and delete what nobody has asked for lately."""
        self._folder = folder
        self.read = 0
        """Answers that were found."""
        if folder is not None:
            _forget(folder)

    def get(self, question: Iterable[str]) -> Rows | None:
        """Return a kept answer, or None.

        Args:
            question: everything that the answer depends on.
        """
        if self._folder is None:
            return None
        path = self._path(self._folder, question)
        try:
            kept = _READ.decode(zlib.decompress(path.read_bytes()))
            rows = [(metric, kept.points[place]) for metric, place in kept.series]
        except (OSError, zlib.error, msgspec.DecodeError, IndexError):
            return None
        self.read += 1
        with suppress(OSError):
            path.touch()
        return rows

    def put(self, question: Iterable[str], rows: Rows) -> None:
        """Keep an answer; where the disk does not take it, it is asked again next time."""
        if self._folder is None:
            return
        places: dict[bytes, int] = {}
        series = [(metric, places.setdefault(points, len(places))) for metric, points in rows]
        packed = zlib.compress(msgspec.msgpack.encode(_File(list(places), series)), level=1)
        path = self._path(self._folder, question)
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=self._folder, suffix=".part", delete=False) as file:
                try:
                    file.write(packed)
                    file.close()
                    Path(file.name).replace(path)
                except OSError:
                    Path(file.name).unlink(missing_ok=True)
                    raise

    @staticmethod
    def _path(folder: Path, question: Iterable[str]) -> Path:
        told = msgspec.json.encode([_FORMAT, *question])
        return folder / f"{sha256(told).hexdigest()}.answer"


def _forget(folder: Path) -> None:
    """Delete old files, and halves that an interrupted run left."""
    oldest = time.time() - KEPT
    with suppress(OSError):
        for path in folder.iterdir():
            age_limit = oldest if path.suffix == ".answer" else oldest + KEPT - DAY
            if path.suffix in {".answer", ".part"} and path.stat().st_mtime < age_limit:
                path.unlink()
