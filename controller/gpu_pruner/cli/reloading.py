"""The settings file, read anew whenever its content changes.

Looks before every cycle. A ConfigMap that is mounted as a directory changes by a swapped link, so
what counts is the content behind the name. A file that is wrong changes nothing: it is told once,
in the log and by a metric, and the old settings hold until a right one is there. So does one that
was emptied, because that is what a file looks like while it is written.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from gpu_pruner.cli.given import loaded_with
from gpu_pruner.cli.wiring import kept_seconds
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.units import Seconds
from gpu_pruner.record.board import Board
from gpu_pruner.record.reloads import Reloads
from gpu_pruner.settings.document import LARGEST, Document, read_document
from gpu_pruner.settings.reloading import changes, taken_over
from gpu_pruner.settings.schema import Settings

_SETTLING: Seconds = 1.0
"""How long a file has to stay the same: editors empty it before they write it."""

_log = structlog.get_logger(__name__)


@dataclass(slots=True, kw_only=True)
class SettingsFile:
    """One settings file, and the settings that hold."""

    file: Path
    flags: Mapping[str, object]
    """As at the start: they and the variables win over a changed file, too."""
    settings: Settings
    """Those that hold now."""
    started_with: Settings = field(init=False)
    _seen: str = ""

    def __post_init__(self) -> None:
        """Remember what was connected at the start."""
        self.started_with = self.settings
        self._seen = _fingerprint(self.file)

    def begin(self, board: Board, clock: Clock) -> None:
        """Tell that the reading at the start succeeded."""
        board.reloads = Reloads(is_last_successful=True, succeeded_at=clock.now())

    async def look(self, board: Board, clock: Clock, obey: Callable[[Rules], None]) -> None:
        """Read the file if its content is new, and have the next cycle obey what it says.

        Args:
            board: told how the reading ended.
            clock: for when.
            obey: called with the new rules, where any changed.
        """
        seen = await asyncio.to_thread(_fingerprint, self.file)
        if seen == self._seen:
            return
        await clock.sleep(_SETTLING)
        if await asyncio.to_thread(_fingerprint, self.file) != seen:
            return  # it is still being written: the next cycle looks again
        self._seen = seen
        try:
            document = await asyncio.to_thread(read_document, self.file)
            wanted, settings = self._read(document)
        except ConfigurationError as error:
            _log.error("settings file is wrong; the old settings hold", error=str(error))
            if board.reloads is not None:
                succeeded_at = board.reloads.succeeded_at
                board.reloads = Reloads(is_last_successful=False, succeeded_at=succeeded_at)
            return
        _log.info(
            "settings reloaded",
            changed=[one.line for one in changes(self.settings, settings)],
            needs_restart=[one.line for one in changes(settings, wanted)],
        )
        if settings.rules() != self.settings.rules():
            obey(settings.rules())
        self.settings = settings
        board.reloads = Reloads(is_last_successful=True, succeeded_at=clock.now())

    def _read(self, document: Document) -> tuple[Settings, Settings]:
        """Return what the file asks for, and what of it holds from the next cycle on.

        Raises:
            ConfigurationError: it is wrong, or cannot hold without a restart.
        """
        if not document.values:
            raise ConfigurationError("says nothing any more", path=document.name)
        wanted = loaded_with(document, self.flags).settings
        settings = taken_over(self.started_with, wanted)
        scraped = settings.prometheus is None and settings.scrape.exporters
        if scraped and kept_seconds(settings) > kept_seconds(self.started_with):
            raise ConfigurationError(
                "a longer window or notice needs a restart where exporters are scraped directly: "
                "samples are kept for as long as was asked at the start"
            )
        return wanted, settings


def _fingerprint(file: Path) -> str:
    """Return what differs where the content differs; an unreadable file has its own."""
    try:
        with file.open("rb") as opened:
            return hashlib.sha256(opened.read(LARGEST + 1)).hexdigest()
    except OSError as error:
        return str(error.strerror)
