"""Regular expressions in settings: checked when settings are read."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

LONGEST = 200
"""Characters of an expression: a list of names fits."""


def _pattern(text: str) -> str:
    if not text or len(text) > LONGEST:
        message = f"must have 1 to {LONGEST} characters"
        raise ValueError(message)
    try:
        re.compile(text)
    except re.error as error:
        message = f"is no regular expression: {error.msg} at character {(error.pos or 0) + 1}"
        raise ValueError(message) from None
    return text


Pattern = Annotated[str, AfterValidator(_pattern)]
"""An expression that a whole name has to match, as in Prometheus."""
