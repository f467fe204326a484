"""What is known of a device per step, as bits.

It answers, for one signal of one device, in which steps there was a sample, work, garbage, a loud
value or a movement. It keeps no values and never gives a verdict. `evidence` makes facts of a whole
period, `screen` slice by slice; both therefore read a sample in the same way.

Bit k of a mask stands for step base + k; whoever owns the facts owns the base.
"""

from __future__ import annotations

import msgspec

from gpu_pruner.decide.signals import SignalRule
from gpu_pruner.model.signals import Period, Signal, SignalEvidence, Steps


class Facts(msgspec.Struct, frozen=True, gc=False):
    """Masks of one signal of one device. Equal facts may be one object: nobody changes them."""

    present: int = 0
    active: int = 0
    invalid: int = 0
    loud: int = 0
    changes: int = 0

    def __or__(self, other: Facts) -> Facts:
        """Return what either shows."""
        return Facts(
            self.present | other.present,
            self.active | other.active,
            self.invalid | other.invalid,
            self.loud | other.loud,
            self.changes | other.changes,
        )

    def corrected_by(self, other: Facts) -> Facts:
        """Return what either shows, but movement as `other` has it where that has a sample."""
        known = self.changes & ~other.present
        return msgspec.structs.replace(self | other, changes=known | other.changes)

    def rebased(self, steps: int) -> Facts:
        """Return the facts for a base so many steps up, without older ones, or down."""
        return Facts(
            shifted(self.present, steps),
            shifted(self.active, steps),
            shifted(self.invalid, steps),
            shifted(self.loud, steps),
            shifted(self.changes, steps),
        )

    def within(self, period: Period, *, base: int) -> Facts:
        """Return what a period shows, on the base of the step before its first.

        Only the presence of that step itself is left, which counts for the next one.
        """
        up, steps = period.first - 1 - base, (1 << period.steps + 1) - 1
        inside = steps - 1
        return Facts(
            shifted(self.present, up) & steps,
            shifted(self.active, up) & inside,
            shifted(self.invalid, up) & inside,
            shifted(self.loud, up) & inside,
            shifted(self.changes, up) & inside,
        )


NOTHING = Facts()


def shifted(mask: int, by: int) -> int:
    """Return the mask with bit `by` moved to bit 0; negative `by` moves it up."""
    return mask >> by if by >= 0 else mask << -by


def read(steps: Steps, *, base: int, rule: SignalRule, active_from: float) -> Facts:
    """Return what the peaks of one series show, movement left out.

    Args:
        steps: those before `base` are left out.
        base: step number of bit 0.
        rule: for the valid range and what is loud.
        active_from: value at or above which a step counts as work.
    """
    lowest, highest, loud_from = rule.lowest, rule.highest, rule.loud_from
    present = active = invalid = loud = 0
    for step, value in steps:
        if step < base:
            continue
        bit = 1 << (step - base)
        present |= bit
        if not lowest <= value <= highest:  # not-a-number fails here too
            invalid |= bit
            continue
        if value >= active_from:
            active |= bit
        if value >= loud_from:
            loud |= bit
    return Facts(present, active, invalid, loud)


def read_moves(steps: Steps, *, base: int) -> Facts:
    """Return in which steps a series is there, and in which it moved.

    Args:
        steps: of a column of movement.
        base: step number of bit 0; earlier steps are left out.
    """
    present = changes = 0
    for step, moved in steps:
        if step >= base:
            bit = 1 << (step - base)
            present |= bit
            if moved:
                changes |= bit
    return Facts(present, changes=changes)


def movement(steps: Steps, *, base: int, rule: SignalRule) -> int:
    """Return the steps in which a series' valid value differs from the valid one before it.

    Args:
        steps: peaks of one series; two series are never compared with one another.
        base: step number of bit 0; earlier steps serve as what the later ones are compared with.
        rule: for the valid range.
    """
    changes, previous = 0, None
    for step, value in steps:
        if rule.lowest <= value <= rule.highest:
            if previous is not None and value != previous and step >= base:
                changes |= 1 << (step - base)
            previous = value
    return changes


def signal_evidence(
    signal: Signal, metric: str, facts: Facts, *, period: Period
) -> SignalEvidence | None:
    """Say what a period's facts show.

    Args:
        signal: which.
        metric: its name, for people.
        facts: as `Facts.within` gives them.
        period: the same.

    Returns:
        None where no step of the period, nor the step before it, has a sample: the signal was not
        exported then.
    """
    around = facts.present
    if not around:
        return None
    base, width = period.first - 1, period.step_seconds
    seen = (around | around << 1) & ((1 << period.steps + 1) - 2)
    active, changes = facts.active, facts.changes
    return SignalEvidence(
        signal=signal,
        metric=metric,
        seen_steps=seen.bit_count(),
        active_steps=active.bit_count(),
        last_active_at=(base + active.bit_length()) * width if active else None,
        invalid_steps=facts.invalid.bit_count(),
        changes=changes.bit_count(),
        newest_at=(base + around.bit_length()) * width,
        loud_steps=facts.loud.bit_count(),
        last_changed_at=(base + changes.bit_length()) * width if changes else None,
    )
