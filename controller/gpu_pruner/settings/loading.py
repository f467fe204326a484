"""Values from flags and environment to `Settings`, with every error at once."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.settings.schema import Settings


def load_settings(values: Mapping[str, object]) -> Settings:
    """Check values against the schema.

    Args:
        values: field name to value; a nested section is a mapping. None values are left out, so
            that a flag that was not given does not hide a default.

    Raises:
        ConfigurationError: all that is wrong, one line each with the path of the field.
    """
    try:
        return Settings.model_validate(_given(values))
    except ValidationError as error:
        lines = [
            f"{'.'.join(str(part) for part in one['loc']) or 'settings'}: {_sentence(one['msg'])}"
            for one in error.errors(include_url=False, include_input=False)
        ]
        raise ConfigurationError("\n".join(lines)) from None


def _given(values: Mapping[str, object]) -> dict[str, object]:
    return {
        key: _given(value) if isinstance(value, Mapping) else value
        for key, value in values.items()
        if value is not None
    }


def _sentence(message: str) -> str:
    return message.removeprefix("Value error, ")
