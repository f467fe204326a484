"""A reason on the command line: text that the API server can store and a terminal can show."""

from __future__ import annotations

from unicodedata import category

import click
from click.types import StringParamType
from typing_extensions import override

from gpu_pruner.act.intents import LONGEST_REASON

_NO_TEXT = frozenset({"Cc", "Cs"})
"""Control characters, and bytes that were no UTF-8."""
_SPACES = "\t\n\r"


class Reason(StringParamType):
    """Text of at most `LONGEST_REASON` characters, without what is no text."""

    @override
    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the text without the blanks around it; fails where it is none."""
        text = super().convert(value, param, ctx).strip()
        if any(category(one) in _NO_TEXT and one not in _SPACES for one in text):
            self.fail("has a control character, or a byte that is not UTF-8", param, ctx)
        if len(text) > LONGEST_REASON:
            self.fail(f"say why, in 1 to {LONGEST_REASON} characters", param, ctx)
        return text


REASON = Reason()
