"""What all sections of the settings have in common: strictness, and how to read lengths of time."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationInfo, field_validator

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.settings.durations import parse_duration


def _seconds(value: object) -> object:
    if not isinstance(value, (str, int, float)) or isinstance(value, bool):
        return value
    try:
        return parse_duration(value)
    except ConfigurationError as error:
        raise ValueError(str(error)) from error


Duration = Annotated[float, BeforeValidator(_seconds)]
"""Seconds; a bare number is seconds, ``35m`` and ``2h`` are accepted."""


class Section(BaseModel):
    """Unknown keys are errors, and values are never repeated in messages."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, allow_inf_nan=False
    )

    @field_validator("*", mode="before")
    @classmethod
    def _true_is_no_number(cls, value: object, info: ValidationInfo) -> object:
        """Refuse what pydantic would read as 1 or 0, and the other way round."""
        kind = cls.model_fields[info.field_name].annotation if info.field_name else None
        if isinstance(value, bool) and kind in {int, float}:
            raise ValueError(f"must be a number; found {str(value).lower()}")
        if isinstance(value, (int, float)) and not isinstance(value, bool) and kind is bool:
            raise ValueError(f"must be true or false; found {value}")
        return value
