"""A clock that stands still until somebody waits on it or moves it."""

from __future__ import annotations

from dataclasses import dataclass, field

NOON = 1_769_860_800.0
"""2026-01-31T12:00:00Z."""


@dataclass(slots=True)
class ManualClock:
    at: float = NOON
    waits: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.at += seconds
