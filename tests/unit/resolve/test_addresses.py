"""What is read as a person, and what is not."""

from __future__ import annotations

import pytest

from gpu_pruner.model.audience import Address, AddressKind
from gpu_pruner.resolve.addresses import LONGEST_TEXT, MOST_PEOPLE, Addresses, addresses

EMAIL = "alice@example.com"


def kinds(text: str) -> list[tuple[str, str]]:
    return [(one.kind.value, one.text) for one in addresses(text).people]


@pytest.mark.parametrize(
    ("text", "kind", "address"),
    [
        (EMAIL, "email", EMAIL),
        (f"  {EMAIL}\n", "email", EMAIL),
        (f"Alice Example <{EMAIL}>", "email", EMAIL),
        ("first.last+gpu@sub.example.co.uk", "email", "first.last+gpu@sub.example.co.uk"),
        ("<@U0123ABCD>", "slack-user", "U0123ABCD"),
        ("<@UALICE>", "slack-user", "UALICE"),
        ("<@W012A3CDE|alice>", "slack-user", "W012A3CDE"),
        ("U0123ABCD", "slack-user", "U0123ABCD"),
        ("@U0123ABCD", "slack-user", "U0123ABCD"),
        ("<!subteam^S0123ABCD>", "slack-group", "S0123ABCD"),
        ("<!subteam^S0123ABCD|@team-a>", "slack-group", "S0123ABCD"),
        ("S0123ABCD", "slack-group", "S0123ABCD"),
        ("alice", "name", "alice"),
        ("@alice", "name", "alice"),
        ("Alice Example", "name", "Alice Example"),
        ("kube:admin", "name", "kube:admin"),
        ("alice@corp", "name", "alice@corp"),
        ("UNDERWRITER", "name", "UNDERWRITER"),
        ("zoë", "name", "zoë"),
    ],
)
def test_one_address(text: str, kind: str, address: str) -> None:
    assert kinds(text) == [(kind, address)]
    assert addresses(text).unread == ()


@pytest.mark.parametrize(
    "text",
    [
        "<!channel>",
        "<!here>",
        "<!everyone|x>",
        "@here",
        "@channel",
        "here",
        "Everyone",
        "x @channel",
        "ａｌｌ",  # noqa: RUF001 - letters of full width read as the others do
        "@ｈｅｒｅ",  # noqa: RUF001 - as above
        "<https://example.com|alice>",
        "https://example.com",
        "javascript:alert(1)//",
        "*alice*",
        "`alice`",
        "alice & bob",
        "<@U0123ABCD",
        "<@u0123abcd>",
        "<!subteam^U0123>",
        "al\x00ice",
        "al\u202eice",
        "alice\u200b",
        "system:serviceaccount:team-a:default",
        "a" * 65,
        f"{'a' * 64}@{'b' * 63}.{'c' * 63}.{'d' * 63}.example.com",
    ],
)
def test_what_is_nobody(text: str) -> None:
    assert addresses(text) == Addresses(unread=(text,))


def test_several_people() -> None:
    text = "alice@example.com, Bob Example; <@U0123ABCD> <!subteam^S0123ABCD>\n@carol"
    assert [one for _, one in kinds(text)] == [
        "alice@example.com",
        "Bob Example",
        "U0123ABCD",
        "S0123ABCD",
        "carol",
    ]


def test_mentions_need_no_separator() -> None:
    assert kinds("<@U1><@U2>") == [("slack-user", "U1"), ("slack-user", "U2")]


def test_one_wrong_piece_hides_no_other() -> None:
    told = addresses("alice, <!channel>, bob")
    assert [one.text for one in told.people] == ["alice", "bob"]
    assert told.unread == ("<!channel>",)


def test_everybody_among_mentions_is_left_out() -> None:
    told = addresses("<@U1> <!here>")
    assert told.people == (Address(AddressKind.SLACK_USER, "U1"),)
    assert told.unread == ("<!here>",)


def test_a_person_is_named_once() -> None:
    assert kinds("alice, @alice, alice") == [("name", "alice")]


def test_a_mailing_list_is_cut_and_told() -> None:
    told = addresses(",".join(f"user{number}" for number in range(MOST_PEOPLE + 3)))
    assert [one.text for one in told.people] == [f"user{number}" for number in range(MOST_PEOPLE)]
    assert told.left_out == 3


def test_half_of_a_long_text_is_not_read() -> None:
    text = "alice," + "b" * LONGEST_TEXT
    assert addresses(text) == Addresses(unread=(text,))


def test_channels_are_kept_apart_from_people() -> None:
    assert addresses("#team-a, <#C0123ABCD|gpu>, alice").channels == ("#team-a", "C0123ABCD")


@pytest.mark.parametrize("text", ["", "  ", ",;\n", "\t"])
def test_nothing_names_nobody(text: str) -> None:
    assert addresses(text) == Addresses()
