"""A file for batches that the database could not take: appended durably, read back oldest first.

What `append` returned from is on the disk. A record that was torn by a crash in the middle of
`append` was never promised, and is cut off. Records are compressed, because a long outage is many
cycles that say nearly the same. Two processes may share the file: each holds its lock while it
works. Blocks its caller, who is a thread of its own.
"""

from __future__ import annotations

import fcntl
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from gpu_pruner.errors import ConfigurationError, LedgerError
from gpu_pruner.record.ledger.entries import Batch, decoded, encoded

LARGEST = 1 << 30
"""Bytes: a gibibyte holds days of a large cluster, and fits beside other things on a volume."""

_OPEN = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
_FOR_US_ALONE = 0o600
_HEAD = struct.Struct(">4sII")
_MAGIC = b"gpl1"


@dataclass(frozen=True, slots=True)
class Frame:
    """One record as it lies in the file."""

    end: int
    """Offset behind it."""
    payload: bytes
    whole: bool
    """Whether it is what was written."""


class Spool:
    """The file."""

    def __init__(self, path: Path, *, largest: int = LARGEST) -> None:
        """Use a file; it is made by the first `append`.

        Args:
            path: in a directory of ours.
            largest: bytes after which nothing more is taken.

        Raises:
            ConfigurationError: the directory cannot be written in.
        """
        self._path = path
        self._largest = largest
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, _OPEN, _FOR_US_ALONE))
            _sync_directory(path.parent)
        except OSError as error:
            place = f"ledger.directory: {path.parent}"
            raise ConfigurationError(f"{place} cannot be written in: {error.strerror}") from None

    def append(self, batch: Batch) -> None:
        """Keep a batch. It is on the disk when this returns.

        Raises:
            LedgerError: the disk is full or broken, or the file is as large as it may get. What
                was in it before still is.
        """
        payload = packed(batch)
        record = _HEAD.pack(_MAGIC, len(payload), zlib.crc32(payload)) + payload
        with _as_ledger_error(), self._locked() as file:
            end = self._cut_off_rest(file, _end_of(_frames(file)))
            if end + len(record) > self._largest:
                raise LedgerError(f"the spool has reached its {self._largest} bytes")
            try:
                _write_all(file, record, at=end)
                os.fsync(file)
            except OSError:
                os.ftruncate(file, end)
                raise

    def drain(self, store: Callable[[Batch], None]) -> int:
        """Store every batch, oldest first, and empty the file when all of them are stored.

        Args:
            store: raises where a batch was not stored: nothing is taken out then, for a batch
                that is stored again counts once.

        Returns:
            How many records could not be read: of a broken disk, or of another version.

        Raises:
            LedgerError: of `store`, or the file cannot be read.
        """
        damaged = 0
        with _as_ledger_error(), self._locked() as file:
            frames = []
            for frame in _frames(file):
                frames.append(replace(frame, payload=b""))
                batch = _batch(frame)
                if batch is None:
                    damaged += 1
                else:
                    store(batch)
            self._cut_off_rest(file, _end_of(frames))
            os.ftruncate(file, 0)
            os.fsync(file)
        return damaged

    def count(self) -> int:
        """Return how many batches are in it.

        Raises:
            LedgerError: the file cannot be read.
        """
        with _as_ledger_error(), self._locked() as file:
            return sum(1 for _ in _frames(file))

    @contextmanager
    def _locked(self) -> Iterator[int]:
        file = os.open(self._path, _OPEN, _FOR_US_ALONE)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)

    def _cut_off_rest(self, file: int, end: int) -> int:
        """Cut off what is behind the last record; kept beside the file unless it is a torn one."""
        rest = os.pread(file, self._largest, end)
        if rest and not _is_torn(rest):
            self._path.with_suffix(".damaged").write_bytes(rest)
        if rest:
            os.ftruncate(file, end)
        return end


@contextmanager
def _as_ledger_error() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LedgerError(f"the spool: {error.strerror}") from None


def _frames(file: int) -> Iterator[Frame]:
    """Yield the records, until the end or something that is none; a torn last one is none."""
    at, size = 0, os.fstat(file).st_size
    while at + _HEAD.size <= size:
        magic, length, checksum = _HEAD.unpack(os.pread(file, _HEAD.size, at))
        end = at + _HEAD.size + length
        if magic != _MAGIC or end > size:
            return
        payload = os.pread(file, length, at + _HEAD.size)
        whole = zlib.crc32(payload) == checksum
        if not whole and end == size:
            return
        yield Frame(end, payload, whole)
        at = end


def _end_of(frames: Iterable[Frame]) -> int:
    return max((one.end for one in frames), default=0)


def _batch(frame: Frame) -> Batch | None:
    if not frame.whole:
        return None
    try:
        return unpacked(frame.payload)
    except LedgerError:
        return None


def packed(batch: Batch) -> bytes:
    """Return a batch in few bytes."""
    return zlib.compress(encoded(batch), 1)


def unpacked(payload: bytes) -> Batch:
    """Return the batch of `packed` bytes.

    Raises:
        LedgerError: they are none of this version.
    """
    try:
        return decoded(zlib.decompress(payload))
    except (msgspec.MsgspecError, zlib.error):
        raise LedgerError("a kept batch cannot be read") from None


def _is_torn(rest: bytes) -> bool:
    """Return whether these bytes are a record that was being written when the process died."""
    if len(rest) < _HEAD.size:
        return True
    magic, length, _ = _HEAD.unpack_from(rest)
    return bool(magic == _MAGIC and len(rest) <= _HEAD.size + length)


def _write_all(file: int, record: bytes, *, at: int) -> None:
    while record:
        written = os.pwrite(file, record, at)
        record, at = record[written:], at + written


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
