"""Secrets that travel in HTTP headers: made fit for that when settings are read.

A secret that no header can carry would fail at the first request, inside of a library whose words
repeat it. So it is refused here, and only its place and its fault are told. Called by
`settings.schema`, and for token files by `observe.prometheus_auth`.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, SecretStr

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def header_text(text: str) -> str:
    """Return a value as a header can carry it: without the blanks and newlines around it.

    Raises:
        ValueError: it has control characters inside, or characters outside of Latin-1. The value
            is not in the message.
    """
    value = text.strip()
    try:
        value.encode("latin-1")
    except UnicodeEncodeError:
        fits = False
    else:
        fits = value.isprintable()
    if not fits:
        message = "has a line break or another character that no HTTP header can carry"
        raise ValueError(message)
    return value


def _token(secret: SecretStr) -> SecretStr:
    value = header_text(secret.get_secret_value())
    if not value:
        message = "is empty"
        raise ValueError(message)
    return SecretStr(value)


def _headers(headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
    # A name that is none may be a whole header, secret and all: it is not repeated either.
    if not all(_NAME.fullmatch(name) for name in headers):
        message = "a name has a character that no HTTP header name can carry"
        raise ValueError(message)
    checked: dict[str, SecretStr] = {}
    for name, secret in headers.items():
        try:
            checked[name] = SecretStr(header_text(secret.get_secret_value()))
        except ValueError as error:
            message = f"{name} {error}"
            raise ValueError(message) from None
    return checked


Token = Annotated[SecretStr, AfterValidator(_token)]
"""A bearer token, stripped."""

Headers = Annotated[dict[str, SecretStr], AfterValidator(_headers)]
"""Header names with their values, stripped."""
