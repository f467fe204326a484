"""What is known of a device per step, as bits.

It answers, for one signal of one device, in which steps there was a sample, work, garbage, a loud
value or a movement. It never keeps values for longer than the next comparison needs, and never
gives a verdict. `evidence` fills it from a whole period, `screen` slice by slice; both therefore
read a sample in the same way.

Bit k of a mask stands for step base + k; whoever owns the facts owns the base.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gpu_pruner.decide.signals import SIGNALS
from gpu_pruner.model.signals import Period, SeriesLabels, Signal, SignalEvidence

Steps = tuple[tuple[int, float], ...]
"""(step number, peak in that step), ascending: the steps of a `Track`."""


@dataclass(slots=True)
class Series:
    """Movement of one series. Values of two series are never compared with one another."""

    metric: str
    labels: SeriesLabels
    changes: int = 0
    recent: Steps = ()
    """The newest slice of it, to compare the next one with."""
    slice_number: int = -1
    """In which slice it was last seen, to tell a second series with the same labels apart."""

    def move(self, steps: Steps, *, base: int, lowest: float, highest: float) -> None:
        """Note in which of these steps the value differs from the valid one before it.

        A step that was read before is judged anew, unless the value before it is out of reach and
        its own value is the same as it was.
        """
        previous: float | None = None
        for step, value in steps:
            if not lowest <= value <= highest:
                continue
            if step >= base:
                bit = 1 << (step - base)
                before = self._before(step, lowest, highest) if previous is None else previous
                if before is not None and value != before:
                    self.changes |= bit
                elif before is not None or (step, value) not in self.recent:
                    self.changes &= ~bit
            previous = value
        self.recent = steps

    def _before(self, step: int, lowest: float, highest: float) -> float | None:
        """Return the newest valid value known from an earlier slice and step."""
        for known, value in reversed(self.recent):
            if known < step and lowest <= value <= highest:
                return value
        return None


@dataclass(slots=True)
class SignalFacts:
    """One signal of one device, all its series together."""

    signal: Signal
    metric: str
    present: int = 0
    active: int = 0
    invalid: int = 0
    loud: int = 0
    series: list[Series] = field(default_factory=list)
    """Only for signals whose movement matters."""

    def absorb(self, steps: Steps, *, base: int, active_from: float) -> None:
        """Add the samples of one series. Reading them twice changes nothing.

        Args:
            steps: of one track; those before `base` are left out.
            base: step number of bit 0.
            active_from: value at or above which a step counts as work.
        """
        rule = SIGNALS[self.signal]
        lowest, highest, loud_from = rule.lowest, rule.highest, rule.loud_from
        for step, value in steps:
            if step < base:
                continue
            bit = 1 << (step - base)
            self.present |= bit
            if not lowest <= value <= highest:  # not-a-number fails here too
                self.invalid |= bit
                continue
            if value >= active_from:
                self.active |= bit
            if value >= loud_from:
                self.loud |= bit

    def rebase(self, steps: int) -> None:
        """Follow the owner's base: up by so many steps, forgetting older ones, or down."""
        self.present = shifted(self.present, steps)
        self.active = shifted(self.active, steps)
        self.invalid = shifted(self.invalid, steps)
        self.loud = shifted(self.loud, steps)
        for one in self.series:
            one.changes = shifted(one.changes, steps)
        self.series = [one for one in self.series if one.changes]

    @property
    def changes(self) -> int:
        """Return the steps in which any series moved."""
        mask = 0
        for one in self.series:
            mask |= one.changes
        return mask

    def window(self, period: Period, *, base: int) -> Window:
        """Return what a period shows of these facts."""
        offset, mask = period.first - base, (1 << period.steps) - 1
        return (
            shifted(self.present, offset - 1) & (mask << 1 | 1),
            shifted(self.active, offset) & mask,
            shifted(self.invalid, offset) & mask,
            shifted(self.loud, offset) & mask,
            shifted(self.changes, offset) & mask,
        )


Window = tuple[int, int, int, int, int]
"""Masks of one period: present (from the step before the period on), active, invalid, loud,
changes (all from the period's first step on)."""


def shifted(mask: int, by: int) -> int:
    """Return the mask with bit `by` moved to bit 0; negative `by` moves it up."""
    return mask >> by if by >= 0 else mask << -by


def signal_evidence(facts: SignalFacts, period: Period, *, window: Window) -> SignalEvidence | None:
    """Say what a period's masks show.

    Returns:
        None where no step of the period, nor the step before it, has a sample: the signal was not
        exported then.
    """
    around, active, invalid, loud, changes = window
    if not around:
        return None
    seen = (around | around >> 1) & ((1 << period.steps) - 1)
    width, newest = period.step_seconds, period.first - 1 + around.bit_length()
    last_active = (period.first + active.bit_length()) * width if active else None
    last_changed = (period.first + changes.bit_length()) * width if changes else None
    return SignalEvidence(
        signal=facts.signal,
        metric=facts.metric,
        seen_steps=seen.bit_count(),
        active_steps=active.bit_count(),
        last_active_at=last_active,
        invalid_steps=invalid.bit_count(),
        changes=changes.bit_count(),
        newest_at=newest * width,
        loud_steps=loud.bit_count(),
        last_changed_at=last_changed,
    )
