"""Secrets that stand elsewhere: in a file, or in an environment variable; never in the settings.

A file is read again at every use, so that a secret can be replaced at any time. What is wrong is
told by the place alone: nothing of a secret is ever repeated.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self

from pydantic import Field, field_validator, model_validator

from gpu_pruner.settings.section import Section

_LONGEST = 4096
"""Bytes of a file that are looked at: a secret is one short line."""
_OURS = "GPU_PRUNER_"


class SecretPlace(Section):
    """Where one secret stands: exactly one of the two."""

    file: Path | None = Field(None, description="File that holds it; read again at every use.")
    variable: str | None = Field(
        None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="Environment variable that holds it. Not one that begins with GPU_PRUNER_: "
        "those are settings.",
    )

    @field_validator("variable")
    @classmethod
    def _is_no_setting(cls, name: str | None) -> str | None:
        if name is not None and name.startswith(_OURS):
            raise ValueError(f"variables that begin with {_OURS} are settings; take another name")
        return name

    @model_validator(mode="after")
    def _is_one_place(self) -> Self:
        if (self.file is None) == (self.variable is None):
            raise ValueError("give either file or variable")
        return self

    def problem(self) -> str:
        """Return why the secret cannot be read now; empty where it can."""
        try:
            self.read()
        except ValueError as error:
            return str(error)
        return ""

    def read(self) -> str:
        """Return the secret, without the blanks and line ends around it.

        Raises:
            ValueError: there is none; the sentence names the place and repeats nothing of it.
        """
        if self.file is not None:
            place, held = str(self.file), _held_by(self.file)
        else:
            place, held = f"the variable {self.variable}", os.environ.get(self.variable or "", "")
        secret = held.strip()
        if not secret:
            raise ValueError(f"{place} is empty, or not there")
        if not secret.isprintable():
            raise ValueError(f"{place} has a line break or another control character in it")
        return secret


def _held_by(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(_LONGEST).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        # What an error of decoding says is the secret itself.
        raise ValueError(f"{file} is not a readable text file") from None
