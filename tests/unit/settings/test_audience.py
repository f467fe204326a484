"""Whom the settings name: read strictly."""

from __future__ import annotations

import pytest

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.model.audience import Address, AddressKind, Contact
from gpu_pruner.settings.layers import Origin, Place, Written, flat
from gpu_pruner.settings.loading import load
from gpu_pruner.settings.schema import Settings

PLACE = Place(Origin.FLAG, "here")


def settings(audience: dict[str, object]) -> Settings:
    layer = {keys: Written(one, PLACE) for keys, one in flat(audience, ("audience",))}
    return load([layer]).settings


def test_people_and_a_channel_of_a_namespace() -> None:
    told = settings(
        {
            "namespaces": {
                "team-a": "<@U0123ABCD> <!subteam^S0123ABCD>, #team-a",
                "alice-": "@alice",
            },
            "channel": "<#C0123ABCD|gpu>",
        }
    )
    directory = told.rules().directory
    assert directory.namespaces == {
        "team-a": Contact(
            (
                Address(AddressKind.SLACK_USER, "U0123ABCD"),
                Address(AddressKind.SLACK_GROUP, "S0123ABCD"),
            ),
            "#team-a",
        ),
        "alice-": Contact((Address(AddressKind.NAME, "alice"),)),
    }
    assert directory.channel == "C0123ABCD"


def test_nothing_set_names_nobody() -> None:
    directory = settings({}).rules().directory
    assert (directory.namespaces, directory.channel) == ({}, "")


@pytest.mark.parametrize(
    ("audience", "message"),
    [
        ({"namespaces": {"team-a": "<!channel>"}}, "audience.namespaces.team-a: must be an e-mail"),
        ({"namespaces": {"team-a": "alice, <!here>"}}, "is nobody"),
        ({"namespaces": {"team-a": ""}}, "audience.namespaces.team-a: must be an e-mail"),
        ({"namespaces": {"team-a": "#one, #two"}}, "names more than one channel"),
        ({"namespaces": {"team-a": "a,b,c,d,e,f"}}, "names more than 5 people"),
        ({"namespaces": {"Team A": "alice"}}, "name 1 is neither a namespace nor the beginning"),
        ({"namespaces": {"team-a": 7}}, "audience.namespaces.team-a"),
        ({"channel": "general"}, "audience.channel: must be a channel"),
        ({"channel": "#one, #two"}, "audience.channel: must be a channel"),
        ({"channels": "#one"}, "audience.channels"),
    ],
)
def test_what_is_refused(audience: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        settings(audience)
    assert message in str(refused.value)
