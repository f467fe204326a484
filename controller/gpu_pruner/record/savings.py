"""What idle GPUs cost and what pauses gave back: by namespace, owner, workload and model.

Pure sums of what the ledger knows. GPU hours are GPUs times hours. Money appears only with a price
table, and what has no price is told beside it in hours, never as 0.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_EVEN, Decimal

import msgspec

from gpu_pruner.model.units import HOUR, rfc3339
from gpu_pruner.record.ledger.uses import PAUSED, Usage, Use, Wrong
from gpu_pruner.settings.prices import PriceTable

_CENT = Decimal("0.01")
_DIGITS = 4
"""Of GPU hours: a thousandth of a minute is below what cycles can tell."""

_COSTS = frozenset({"idle", PAUSED})
"""States whose hours are told as money."""


class Cost(msgspec.Struct, frozen=True, rename="camel"):
    """Money for some GPU hours."""

    amount: str | None
    """For those that have a price, to the hundredth; null where none has."""
    gpu_hours_without_price: float


class SavingsRow(msgspec.Struct, frozen=True, rename="camel"):
    """One namespace, owner, workload or model, or everything."""

    name: str
    """Empty for GPU hours that have no owner, or no known model."""
    held_gpu_hours: float
    """Held by pods: active, idle and unknown together."""
    idle_gpu_hours: float
    unknown_gpu_hours: float
    """Nothing could be said: neither idle nor at work."""
    returned_gpu_hours: float
    """GPUs held before a pause, for as long as it lasted."""
    false_positives: int | None
    """Pauses that somebody called wrong; null for a model, of which no pause is."""
    idle_cost: Cost | None = None
    """Absent without a price table."""
    returned_cost: Cost | None = None


class Savings(msgspec.Struct, frozen=True, rename="camel"):
    """The report. Times are RFC 3339, UTC."""

    begin: str
    end: str
    history_begins: str | None
    """The first cycle within; what was before it is not in the sums. Null where there is none."""
    currency: str | None
    total: SavingsRow
    namespaces: tuple[SavingsRow, ...]
    """Each list: most idle GPU hours first."""
    owners: tuple[SavingsRow, ...]
    workloads: tuple[SavingsRow, ...]
    models: tuple[SavingsRow, ...]
    models_without_price: tuple[str, ...]
    """Of the hours that would be told as money."""


def savings(usage: Usage, prices: PriceTable | None) -> Savings:
    """Return the report on some usage."""
    models = {use.model for use in usage.uses if use.state in _COSTS}
    unpriced = sorted(one for one in models if prices is not None and prices.of(one) is None)
    first = usage.first_cycle_at
    return Savings(
        begin=rfc3339(usage.begin),
        end=rfc3339(usage.end),
        history_begins=None if first is None else rfc3339(first),
        currency=prices.currency if prices else None,
        total=_row("", usage.uses, prices, wrong=sum(one.count for one in usage.wrong)),
        namespaces=_rows(usage, prices, by=lambda one: one.namespace),
        owners=_rows(usage, prices, by=lambda one: one.owner),
        workloads=_rows(usage, prices, by=lambda one: one.workload),
        models=_models(usage.uses, prices),
        models_without_price=tuple(unpriced),
    )


def _rows(
    usage: Usage, prices: PriceTable | None, *, by: Callable[[Use | Wrong], str]
) -> tuple[SavingsRow, ...]:
    parts = _parts(usage.uses, by=by)
    wrong: Counter[str] = Counter()
    for one in usage.wrong:
        wrong[by(one)] += one.count
    names = parts.keys() | wrong.keys()
    return _sorted(_row(name, parts.get(name, []), prices, wrong=wrong[name]) for name in names)


def _models(uses: Iterable[Use], prices: PriceTable | None) -> tuple[SavingsRow, ...]:
    parts = _parts(uses, by=lambda use: use.model)
    return _sorted(_row(name, part, prices, wrong=None) for name, part in parts.items())


def _parts(uses: Iterable[Use], *, by: Callable[[Use], str]) -> dict[str, list[Use]]:
    parts: defaultdict[str, list[Use]] = defaultdict(list)
    for use in uses:
        parts[by(use)].append(use)
    return parts


def _sorted(rows: Iterable[SavingsRow]) -> tuple[SavingsRow, ...]:
    """Return rows in the order of `Savings`."""
    return tuple(
        sorted(rows, key=lambda row: (-row.idle_gpu_hours, -row.returned_gpu_hours, row.name))
    )


def _row(
    name: str, uses: Iterable[Use], prices: PriceTable | None, *, wrong: int | None
) -> SavingsRow:
    of_state: defaultdict[str, list[Use]] = defaultdict(list)
    for use in uses:
        of_state[use.state].append(use)
    hours = {state: _hours(part) for state, part in of_state.items()}
    held = [use for state, part in of_state.items() if state != PAUSED for use in part]
    return SavingsRow(
        name=name,
        held_gpu_hours=_hours(held),
        idle_gpu_hours=hours.get("idle", 0.0),
        unknown_gpu_hours=hours.get("unknown", 0.0),
        returned_gpu_hours=hours.get(PAUSED, 0.0),
        false_positives=wrong,
        idle_cost=_cost(of_state["idle"], prices),
        returned_cost=_cost(of_state[PAUSED], prices),
    )


def _hours(uses: Iterable[Use]) -> float:
    return round(sum(use.seconds for use in uses) / HOUR, _DIGITS)


def _cost(uses: list[Use], prices: PriceTable | None) -> Cost | None:
    if prices is None:
        return None
    amount, priced, bare = Decimal(0), not uses, []
    for use in uses:
        price = prices.of(use.model)
        if price is None:
            bare.append(use)
        else:
            amount, priced = amount + price * Decimal(use.seconds) / Decimal(HOUR), True
    shown = str(amount.quantize(_CENT, ROUND_HALF_EVEN)) if priced else None
    return Cost(amount=shown, gpu_hours_without_price=_hours(bare))
