"""The section ``channels``: how people are told, beside the Event that every message leaves.

Says of each channel which messages it takes and whether its confirmation counts as having told a
person or a team. Secrets stand in files or variables only. Opens no connection.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Self

from pydantic import Field, field_validator, model_validator

from gpu_pruner.model.orders import EVENT, MessageKind, Severity
from gpu_pruner.settings.addresses import HookAddress, ServerAddress, is_loopback, is_this_machine
from gpu_pruner.settings.secret_places import SecretPlace
from gpu_pruner.settings.section import Section

LONGEST_WAIT_SECONDS = 10.0
"""Longest wait that can be set: a cycle waits for its messages."""

_RESERVED = frozenset({EVENT, "none"})
_MAIL = r"^[A-Za-z0-9.!#$%&'*+/=?^_{|}~-]{1,64}@[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$"
"""An address as it stands in a header of a mail, without a name, quotes or comments."""
_DOMAIN = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


class ChannelSettings(Section):
    """What every channel can be told."""

    name: str = Field(
        pattern=r"^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$",
        description="Its name in warnedVia, in metrics and in sentences.",
    )
    messages: frozenset[MessageKind] = Field(
        frozenset(MessageKind),
        min_length=1,
        description="Kinds of messages that it takes: warning, reminder, cancelled, paused, "
        "restored. All by default.",
    )
    least_severity: Severity = Field(
        Severity.INFO,
        description="info, or warning: then only what somebody should do something about.",
    )
    counts_as_delivery: bool = Field(
        default=False,
        description="Whether a confirmation means that a person or a team was told. Where one "
        "channel counts, an Event alone does not, and without a delivered warning nothing is "
        "paused. By default true for mail, and false for the others.",
    )
    timeout_seconds: float = Field(
        5.0, gt=0, le=LONGEST_WAIT_SECONDS, description="Longest wait for one confirmation."
    )
    ca_file: Path | None = Field(None, description="CA bundle (PEM) for a private authority.")

    @field_validator("name")
    @classmethod
    def _is_free(cls, name: str) -> str:
        if name in _RESERVED:
            raise ValueError(f"{name} is a name of ours; take another")
        return name

    @model_validator(mode="after")
    def _can_deliver(self) -> Self:
        if self.counts_as_delivery and MessageKind.WARNING not in self.messages:
            raise ValueError(
                f"channel {self.name} counts as delivery but takes no warning: no warning could "
                "ever be delivered"
            )
        return self


class WebhookSettings(ChannelSettings):
    """A signed POST to any service."""

    url: HookAddress = Field(
        description="Where to post: https, or http on the loopback address. Not a place for "
        "secrets: the signature is what proves who we are."
    )
    secret: SecretPlace = Field(description="The key of the signature.")
    private_addresses: bool = Field(
        default=False,
        description="Whether it may be at a private, loopback or link-local address. Redirects "
        "are never followed.",
    )

    @model_validator(mode="after")
    def _may_be_there(self) -> Self:
        if is_loopback(self.url) and not self.private_addresses:
            raise ValueError(
                f"channel {self.name} is at a loopback address: set private_addresses: true"
            )
        return self


class PagerDutySettings(ChannelSettings):
    """Alerts of PagerDuty, by its Events API v2; resolved when the matter ends."""

    routing_key: SecretPlace = Field(description="Integration key of an Events API v2 service.")
    url: ServerAddress = Field(
        "https://events.pagerduty.com",
        description="Base URL of the API; in the EU https://events.eu.pagerduty.com.",
    )

    @field_validator("url")
    @classmethod
    def _is_encrypted(cls, url: str) -> str:
        if not url.startswith("https://"):
            raise ValueError("must begin with https://: the routing key travels in the body")
        return url


class MailSecurity(StrEnum):
    """How the connection to a mail server is kept secret."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


class MailSettings(ChannelSettings):
    """Plain-text mail over SMTP."""

    host: str = Field(
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$|^::1$",
        description="The mail server.",
    )
    port: int = Field(587, ge=1, le=65_535, description="Its port; 465 is usual for tls.")
    security: MailSecurity = Field(
        MailSecurity.STARTTLS,
        description="starttls (required, not just tried), tls from the first byte, or none, which "
        "only goes with a loopback address.",
    )
    user: str | None = Field(None, description="User to log in as; unset: without a login.")
    password: SecretPlace | None = Field(None, description="The user's password.")
    sender: str = Field(pattern=_MAIL, description="The address that mails come from.")
    to: str = Field(
        pattern=_MAIL,
        description="The team's address: told where no owner's address may be used.",
    )
    owner_domains: frozenset[str] = Field(
        frozenset(),
        description="Domains in which the e-mail address of somebody to tell is written to, "
        "beside the domain of `to`. Anybody who may edit a workload can name somebody there, so "
        "that no other domain is ever written to.",
    )
    counts_as_delivery: bool = Field(
        default=True, description="As above. What confirms is the mail server that takes it on."
    )

    @field_validator("owner_domains")
    @classmethod
    def _are_domains(cls, domains: frozenset[str]) -> frozenset[str]:
        lowered = frozenset(one.lower() for one in domains)
        for one in sorted(lowered):
            if not _DOMAIN.fullmatch(one):
                raise ValueError(f"{one[:60]!r} is not a domain like example.org")
        return lowered

    @model_validator(mode="after")
    def _keeps_secrets(self) -> Self:
        if (self.user is None) != (self.password is None):
            raise ValueError(f"channel {self.name}: user and password go together")
        if self.security is MailSecurity.NONE and not is_this_machine(self.host):
            raise ValueError(
                f"channel {self.name}: security: none only goes with a loopback address"
            )
        return self


class ChannelsSettings(Section):
    """How people are told, beside a Kubernetes Event on their workload."""

    cluster: str = Field(
        "",
        max_length=80,
        description="This cluster's name in messages that leave it. Unset: `prometheus.cluster`.",
    )
    mail: tuple[MailSettings, ...] = Field(
        (), description="Mail, to the owner where an annotation says who, else to a team."
    )
    pagerduty: tuple[PagerDutySettings, ...] = Field(
        (), description="Alerts of PagerDuty; resolved when the matter ends."
    )
    webhooks: tuple[WebhookSettings, ...] = Field((), description="Signed POSTs to any service.")

    @field_validator("cluster")
    @classmethod
    def _is_one_line(cls, name: str) -> str:
        if not name.isprintable():
            raise ValueError("has a line break or another control character in it")
        return name

    @model_validator(mode="after")
    def _have_names(self) -> Self:
        seen: set[str] = set()
        for one in self.every():
            if one.name in seen:
                raise ValueError(f"two channels are called {one.name}")
            seen.add(one.name)
        return self

    def every(self) -> Iterator[ChannelSettings]:
        """Yield every channel that is set."""
        yield from self.mail
        yield from self.pagerduty
        yield from self.webhooks

    def delivering(self) -> frozenset[str]:
        """Return the channels whose confirmation says that a warning reached somebody.

        That of an Event counts only where no other channel does.
        """
        counting = frozenset(one.name for one in self.every() if one.counts_as_delivery)
        return counting or frozenset({EVENT})

    def files(self) -> Iterator[tuple[tuple[str, ...], Path]]:
        """Yield every CA bundle that has to be there, with its path in the settings."""
        lists: dict[str, tuple[ChannelSettings, ...]]
        lists = {"mail": self.mail, "pagerduty": self.pagerduty, "webhooks": self.webhooks}
        for key, channels in lists.items():
            for number, one in enumerate(channels):
                if one.ca_file is not None:
                    yield (key, str(number), "ca_file"), one.ca_file

    def secrets(self) -> Iterator[tuple[tuple[str, ...], SecretPlace]]:
        """Yield the place of every secret, with its path in the settings."""
        for number, mail in enumerate(self.mail):
            if mail.password is not None:
                yield ("mail", str(number), "password"), mail.password
        for number, pager in enumerate(self.pagerduty):
            yield ("pagerduty", str(number), "routing_key"), pager.routing_key
        for number, hook in enumerate(self.webhooks):
            yield ("webhooks", str(number), "secret"), hook.secret
