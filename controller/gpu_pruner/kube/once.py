"""Saying a thing once, so that one odd object does not fill the log.

Answers whether something was said before. It logs nothing itself; whoever logs asks it first.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Once:
    """Remembers what was said; bounded, so that at worst something is said again."""

    limit: int = 1000
    _said: set[str] = field(default_factory=set)

    def first(self, what: str) -> bool:
        """Return True the first time that it is asked about `what`."""
        if what in self._said:
            return False
        if len(self._said) >= self.limit:
            self._said.clear()
        self._said.add(what)
        return True
