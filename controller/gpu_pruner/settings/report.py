"""The section ``report``: where the weekly report goes, when, and with which prices.

The address of a webhook is a secret: whoever has it can write into the channel. It is never told,
not even where it is wrong.
"""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from gpu_pruner.settings.section import Section
from gpu_pruner.settings.weekly import WeeklyMoment, parse_weekly


class ReportSettings(Section):
    """The report on idle and returned GPU hours: posted once a week, and served over HTTP."""

    schedule: str | None = Field(
        None,
        description="When the leader posts it every week: a day, a time and an IANA time zone, for "
        "example Fri 17:00 America/New_York. Needs a ledger and a webhook. Unset: never.",
    )
    webhook: SecretStr | None = Field(
        None,
        description="Address of an incoming webhook of Slack, or of what takes the same. It is a "
        "secret: rather name a file.",
    )
    webhook_file: Path | None = Field(
        None, description="File with that address; read again for every post."
    )
    prices_file: Path | None = Field(
        None, description="YAML file with what an hour of each GPU model costs; unset: no money."
    )

    @field_validator("schedule")
    @classmethod
    def _is_a_moment(cls, text: str | None) -> str | None:
        if text is not None:
            parse_weekly(text)
        return text

    @field_validator("webhook")
    @classmethod
    def _is_an_address(cls, secret: SecretStr | None) -> SecretStr | None:
        return None if secret is None else SecretStr(webhook_address(secret.get_secret_value()))

    @model_validator(mode="after")
    def _goes_somewhere(self) -> Self:
        if self.webhook is not None and self.webhook_file is not None:
            raise ValueError("give webhook or webhook_file, not both")
        if self.schedule is not None and self.webhook is None and self.webhook_file is None:
            raise ValueError("a schedule needs a webhook: set webhook_file")
        return self

    @property
    def moment(self) -> WeeklyMoment | None:
        """Return when it is posted; None where it is not."""
        return None if self.schedule is None else parse_weekly(self.schedule)


def webhook_address(text: str) -> str:
    """Return the address of a webhook without the blanks around it.

    Raises:
        ValueError: it is none that a secret may be sent to. Nothing of it is in the message.
    """
    url = text.strip()
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        host.encode("idna")
    except ValueError:
        host, port, parts = "", 0, urlsplit("")
    whole = url.isprintable() and " " not in url and url.isascii()
    if not (whole and host and port != 0 and parts.scheme in {"http", "https"}):
        raise ValueError("is no address of a webhook: it begins with https:// and names a host")
    if parts.scheme == "http" and not _is_loopback(host):
        raise ValueError("must begin with https://: the address of a webhook is a secret")
    if "@" in parts.netloc or parts.fragment:
        raise ValueError("has a user name or a # in it, which no webhook has")
    return url


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
