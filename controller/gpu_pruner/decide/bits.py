"""Sliding windows over masks of steps: what holds in the last so many steps, for all steps at once.

Bit n of a mask is step n. Each answer is a mask whose bit n speaks of the window that ends with
step n, so a week of minutes costs a few dozen operations on one large number instead of ten
thousand looks. `replay` judges a history with it. Pure arithmetic; it knows nothing of GPUs.
"""

from __future__ import annotations


def any_in(mask: int, width: int) -> int:
    """Return where any of the last `width` steps, this one included, has its bit set.

    Args:
        mask: any; the answer may be longer than it by `width` - 1 bits.
        width: at least 1.

    >>> bin(any_in(0b100, 3))
    '0b11100'
    """
    reach = 1
    while 2 * reach <= width:
        mask |= mask << reach
        reach *= 2
    return mask | mask << (width - reach)


def at_least(mask: int, width: int, wanted: int) -> int:
    """Return where at least `wanted` of the last `width` steps have their bit set.

    The counts of all windows are kept in binary, one mask per digit, and windows are put together
    from those of half their width.

    Args:
        mask: any.
        width: at least 1.
        wanted: at least 1.

    >>> bin(at_least(0b1011, 3, 2))
    '0b11110'
    """
    total: list[int] = []
    done, reach, window = 0, 1, [mask]
    while True:
        if width & reach:
            total = _sum(total, [one << done for one in window])
            done += reach
        reach *= 2
        if reach > width:
            break
        window = _sum(window, [one << reach // 2 for one in window])
    return _reaches(total, wanted)


def _sum(left: list[int], right: list[int]) -> list[int]:
    """Add two numbers per step, given and returned digit by digit, the lowest first."""
    digits, carry = [], 0
    for place in range(max(len(left), len(right))):
        one = left[place] if place < len(left) else 0
        other = right[place] if place < len(right) else 0
        either = one ^ other
        digits.append(either ^ carry)
        carry = one & other | carry & either
    return [*digits, carry] if carry else digits


def _reaches(digits: list[int], wanted: int) -> int:
    """Return where a number per step is at least `wanted`."""
    if wanted >> len(digits):
        return 0
    above, equal = 0, -1
    for place in reversed(range(len(digits))):
        if wanted >> place & 1:
            equal &= digits[place]
        else:
            above |= equal & digits[place]
            equal &= ~digits[place]
    return above | equal


def next_in(mask: int, step: int) -> int | None:
    """Return the first step from this one on whose bit is set, or None.

    >>> next_in(0b1001, 1)
    3
    """
    rest = mask >> step
    return step + (rest & -rest).bit_length() - 1 if rest else None


def between(first: int, end: int) -> int:
    """Return the mask of the steps from `first` up to and without `end`.

    >>> bin(between(1, 3))
    '0b110'
    """
    return (1 << end) - (1 << first) if end > first else 0
