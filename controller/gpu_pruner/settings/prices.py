"""A price table: what an hour of each GPU model costs whoever asks. No price is built in.

Models are named as telemetry names them, whole: a pattern would give a slice its board's price.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

from pydantic import Field, ValidationError

from gpu_pruner.settings.document import read_document
from gpu_pruner.settings.problems import Problem, findings, message_of, refused
from gpu_pruner.settings.section import Section


class PriceTable(Section):
    """Prices by model."""

    currency: str = Field(min_length=1, max_length=12)
    """As it is shown, for example EUR."""
    per_gpu_hour: Mapping[str, Decimal]
    """Model to the price of one GPU for one hour."""

    def of(self, model: str) -> Decimal | None:
        """Return a model's price; None where the table has none, which is not a price of 0."""
        return self.per_gpu_hour.get(model)


def read_prices(file: Path) -> PriceTable:
    """Read a price table from YAML.

    Raises:
        ConfigurationError: everything that is wrong, one line each with its place.
    """
    document = read_document(file)
    try:
        table = PriceTable.model_validate(document.values)
    except ValidationError as error:
        problems = []
        for one in findings(error):
            told = message_of(one, known=tuple(PriceTable.model_fields), elsewhere=(), secret=False)
            problems.append(Problem(document.place(one.keys), ".".join(one.keys), told))
        raise refused(problems) from None
    wrong = [
        Problem(document.place(("per_gpu_hour", model)), model, "must be a price of 0 or more")
        for model, price in table.per_gpu_hour.items()
        if not price.is_finite() or price < 0
    ]
    if wrong:
        raise refused(wrong)
    return table
