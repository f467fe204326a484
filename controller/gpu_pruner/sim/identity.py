"""Names and ids that look random and are the same in every run with the same seed.

Called by everything in `sim` that makes an object.
"""

from __future__ import annotations

import hashlib
from uuid import UUID

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Characters of generated names: no vowels, so that no words appear."""


def digest(*parts: object) -> bytes:
    """Return 32 bytes that depend on the parts alone."""
    return hashlib.sha256("\x00".join(str(part) for part in parts).encode()).digest()


def fraction(*parts: object) -> float:
    """Return a number in [0, 1) that depends on the parts alone."""
    return int.from_bytes(digest(*parts)[:6], "big") / 2**48


def uuid_of(*parts: object) -> str:
    """Return a version-4-shaped UUID that depends on the parts alone."""
    return str(UUID(bytes=digest(*parts)[:16], version=4))


def word_of(length: int, *parts: object) -> str:
    """Return a name suffix that depends on the parts alone."""
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest(*parts)[:length])


class Identities:
    """A sequence of fresh ids."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._count = 0

    def uid(self) -> str:
        """Return a uid that was never returned before."""
        self._count += 1
        return uuid_of(self._seed, self._count)

    def word(self, length: int) -> str:
        """Return a fresh name suffix."""
        self._count += 1
        return word_of(length, self._seed, self._count)
