"""The section ``audience``: whom to tell where no annotation names anybody.

Both settings are an administrator's own words, so that they are read strictly: what names nobody is
an error with its place. `settings.schema` includes it.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, field_validator

from gpu_pruner.model.audience import Contact, Directory
from gpu_pruner.resolve.addresses import MOST_PEOPLE, addresses
from gpu_pruner.settings.section import Section

_NAMESPACE = r"^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?-?$"
_FORMS = (
    "an e-mail address, <@U0123ABCD>, <!subteam^S0123ABCD>, a user name, or one #channel; several "
    "are separated by commas"
)


def _contact(text: str) -> str:
    """Check one entry of the map.

    Raises:
        ValueError: as pydantic wants it; the text is not repeated.
    """
    told = addresses(text)
    if told.unread or not (told.people or told.channels):
        raise ValueError(f"must be {_FORMS}; everybody in a channel (<!here>) is nobody")
    if told.left_out:
        raise ValueError(f"names more than {MOST_PEOPLE} people: name a group")
    if len(told.channels) > 1:
        raise ValueError("names more than one channel")
    return text


def _channel(text: str) -> str:
    told = addresses(text)
    if text and (told.people or told.unread or len(told.channels) != 1):
        raise ValueError("must be a channel: #name, or <#C0123ABCD>")
    return text


class AudienceSettings(Section):
    """Whom to tell where nothing on the workload or its namespace names anybody."""

    namespaces: dict[str, Annotated[str, AfterValidator(_contact)]] = Field(
        default_factory=dict,
        description="Namespace to people and a channel: alice@example.com, <@U0123ABCD>, "
        "<!subteam^S0123ABCD>, a user name, #team-a; several with commas. A key that ends in - "
        "is for every namespace that begins so, the longest counts; a key without a dash is also "
        "for namespaces that begin with it and a dash (`--slack-namespace-mentions`).",
    )
    channel: Annotated[str, AfterValidator(_channel)] = Field(
        "", description="Channel for everybody else: #name, or <#C0123ABCD>. Unset: none."
    )

    @field_validator("namespaces")
    @classmethod
    def _names_of_namespaces(cls, entries: dict[str, str]) -> dict[str, str]:
        for place, key in enumerate(entries, start=1):
            if re.match(_NAMESPACE, key) is None:
                # A wrong key may be anything, and is not repeated.
                raise ValueError(f"name {place} is neither a namespace nor the beginning of one")
        return entries

    def directory(self) -> Directory:
        """Return both as decisions read them."""
        told = {key: addresses(text) for key, text in self.namespaces.items()}
        return Directory(
            namespaces={
                key: Contact(one.people, next(iter(one.channels), "")) for key, one in told.items()
            },
            channel=next(iter(addresses(self.channel).channels), ""),
        )
