"""Values from a file, the environment and flags to `Settings`, with every error at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml
from pydantic import ValidationError

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.settings.schema import Settings


def load_settings(values: Mapping[str, object], *, file: Path | None = None) -> Settings:
    """Check values against the schema.

    Args:
        values: field name to value; a nested section is a mapping. None values are left out, so
            that a flag that was not given does not hide a default.
        file: YAML with more of them; what `values` say wins.

    Raises:
        ConfigurationError: the file cannot be read; or all that is wrong, one line each with the
            path of the field.
    """
    told = _given(values)
    if file is not None:
        told = _over(_read(file), told)
    try:
        return Settings.model_validate(told)
    except ValidationError as error:
        lines = [
            f"{'.'.join(str(part) for part in one['loc']) or 'settings'}: {_sentence(one['msg'])}"
            for one in error.errors(include_url=False, include_input=False)
        ]
        raise ConfigurationError("\n".join(lines)) from None


def _read(file: Path) -> dict[str, object]:
    """Return what a YAML file says.

    Raises:
        ConfigurationError: it cannot be read, or holds no mapping; never repeats its content.
    """
    try:
        told: object = yaml.safe_load(file.read_text("utf-8"))
    except OSError as error:
        raise ConfigurationError(str(error.strerror), path=str(file)) from None
    except UnicodeDecodeError:
        raise ConfigurationError("is not UTF-8 text", path=str(file)) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{file}:{mark.line + 1}" if mark is not None else str(file)
        raise ConfigurationError("is not YAML", path=place) from None
    if told is None:
        return {}
    if not isinstance(told, dict) or not all(isinstance(key, str) for key in told):
        raise ConfigurationError("does not hold names of settings with values", path=str(file))
    return told


def _over(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    """Return both, section by section; what is in `above` wins."""
    found = dict(below)
    for key, value in above.items():
        under = found.get(key)
        if isinstance(value, Mapping) and isinstance(under, Mapping):
            found[key] = _over(under, value)
        elif value != {} or under is None:  # a section of which no flag was given says nothing
            found[key] = value
    return found


def _given(values: Mapping[str, object]) -> dict[str, object]:
    return {
        key: _given(value) if isinstance(value, Mapping) else value
        for key, value in values.items()
        if value is not None
    }


def _sentence(message: str) -> str:
    return message.removeprefix("Value error, ")
