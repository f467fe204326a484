"""Who is told about a workload: people, their team's channel, and where each was found.

Only values. `resolve.addresses` reads addresses out of text, `resolve.audience` finds out whose
workload it is, and `notify` writes to them. An address is safe to show and addresses one person or
one group, never everybody; whether it exists is known only to the service that is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class AddressKind(StrEnum):
    """What an address is, and with that who can reach it."""

    EMAIL = "email"
    SLACK_USER = "slack-user"
    """A Slack user id, such as ``U0123ABCD``."""
    SLACK_GROUP = "slack-group"
    """A Slack user group's id, such as ``S0123ABCD``."""
    NAME = "name"
    """A user name of the platform; what it means is known there only."""


@dataclass(frozen=True, slots=True)
class Address:
    """One person, or one group of people."""

    kind: AddressKind
    text: str
    """The address alone: no markup, one line, at most 254 characters (the longest e-mail)."""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody to tell."""

    address: Address
    found: str
    """Where it was found, in words: ``gpu-pruner.io/owner on Deployment serve``."""


@dataclass(frozen=True, slots=True)
class TeamChannel:
    """A channel of the people around a workload. Only the settings name one."""

    name: str
    """``#team-a``, or a Slack channel id."""
    found: str
    """Where it was found, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """Who is told about one workload."""

    people: tuple[Person, ...] = ()
    """All from one rung of the ladder, the first that names anybody; empty where none does."""
    channel: TeamChannel | None = None
    """For where nobody is named, and for what the team should see."""
    unread: tuple[str, ...] = ()
    """What was written down as somebody to tell and is nobody, one clause each."""

    @property
    def names(self) -> str:
        """Return the people in one line; empty where nobody is named."""
        return ", ".join(one.address.text for one in self.people)


@dataclass(frozen=True, slots=True)
class Contact:
    """Whom the settings name for some namespaces."""

    people: tuple[Address, ...] = ()
    channel: str = ""
    """Empty where it names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """What the settings know of who is told."""

    namespaces: Mapping[str, Contact] = field(default_factory=dict)
    """By namespace, or by a beginning of names that ends in ``-``."""
    channel: str = ""
    """Of everybody else; empty where there is none."""
