"""Which meters showed work in the last days: the question, and its answer. Pure.

New hardware under an old stack has shown a utilisation of 0 under full load; a zero is believed of
a model that was seen to show something else. `observe.prometheus` asks once a day, and in one
answer per day of history, because a week of a large fleet is too much for one question.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from gpu_pruner.model.signals import Meter, Period, Signal
from gpu_pruner.model.units import DAY, HOUR, MINUTE, Seconds, Timestamp
from gpu_pruner.observe import labels
from gpu_pruner.observe.profiles import Field, Use
from gpu_pruner.observe.prometheus_replies import Series
from gpu_pruner.observe.promql import Scope

ASK_EVERY: Seconds = DAY
ASK_AGAIN: Seconds = HOUR
"""After an answer that failed."""

_DAYS = 7
_STEP: Seconds = 30 * MINUTE
"""Distance of the moments looked at: 336 samples per series in all. Work that no GPU of a model
does at any of them in a week is not seen, and the model stays unproven."""

_WORK = {Signal.ENGINE: 0.01, Signal.SM: 0.01, Signal.UTIL: 0.0}
"""Above this, in the signal's unit, a meter shows work."""

_MOST = {Signal.ENGINE: 1.1, Signal.SM: 1.1, Signal.UTIL: 100.0}
"""Above this, whatever the scale, it is no reading: exporters print blanks of 2^47 and more."""

_LABELS = msgspec.json.Decoder(dict[str, str])


def questions(fields: Iterable[Field], scope: Scope) -> Iterator[tuple[Field, str]]:
    """Yield the query for each field whose silence could convict: the models that it shows at work.

    Args:
        fields: those that somebody exports.
        scope: of the server.
    """
    by = ", ".join(labels.MODELS)
    for field in fields:
        if field.use is Use.PRIMARY:
            above = _WORK[field.signal] / field.scale
            devices = (scope.selector(field.metric, f'{uuid}!=""') for uuid in field.uuids)
            series = " or ".join(f"{one} > {above:g} <= {_MOST[field.signal]:g}" for one in devices)
            yield field, f"group by ({by}) ({series})"


def days(now: Timestamp) -> Iterator[Period]:
    """Yield the days to look at, the newest first."""
    newest = int(now // _STEP) - 1
    each = int(DAY // _STEP)
    for day in range(_DAYS):
        last = newest - day * each
        yield Period(last - each + 1, last, _STEP)


def read(field: Field, answer: Iterable[Series]) -> frozenset[Meter]:
    """Return the meters of an answer: models, with the field's signal."""
    found = (_LABELS.decode(bytes(one.metric)) for one in answer)
    models = (next((row[one] for one in labels.MODELS if row.get(one)), "") for row in found)
    return frozenset((model, field.signal) for model in models if model)
