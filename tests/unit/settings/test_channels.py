from __future__ import annotations

from pathlib import Path

import pytest

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.model.orders import MessageKind
from gpu_pruner.settings.document import Document, read_document
from gpu_pruner.settings.loading import load, load_settings
from gpu_pruner.settings.reloading import taken_over
from gpu_pruner.settings.schema import Settings

HOOK = {"name": "sink", "url": "https://hooks.example.org/in", "secret": {"variable": "HOOK"}}
MAIL = {
    "name": "mail",
    "host": "smtp.example.org",
    "sender": "p@example.org",
    "to": "t@example.org",
}
PAGER = {"name": "pager", "routing_key": {"file": "/secrets/pager"}}


def channels(**lists: list[dict[str, object]]) -> Settings:
    return load_settings({"channels": lists})


def refusal(**lists: list[dict[str, object]]) -> str:
    with pytest.raises(ConfigurationError) as refused:
        channels(**lists)
    return str(refused.value)


def test_without_channels_an_event_is_the_delivery() -> None:
    assert Settings().rules().delivering_channels == {"event"}


def test_mail_counts_as_delivery_by_itself_and_the_others_where_somebody_says_so() -> None:
    assert channels(mail=[MAIL]).rules().delivering_channels == {"mail"}
    assert channels(webhooks=[HOOK], pagerduty=[PAGER]).rules().delivering_channels == {"event"}
    said = channels(mail=[MAIL], webhooks=[HOOK | {"counts_as_delivery": True}])
    assert said.rules().delivering_channels == {"mail", "sink"}
    unsaid = channels(mail=[MAIL | {"counts_as_delivery": False}])
    assert unsaid.rules().delivering_channels == {"event"}


def test_the_name_of_the_cluster_is_one_line() -> None:
    with pytest.raises(ConfigurationError, match=r"cluster: has a line break"):
        load_settings({"channels": {"cluster": "a\nb"}})


def test_a_channel_says_which_messages_it_takes() -> None:
    [hook] = channels(webhooks=[HOOK | {"messages": ["paused", "restored"]}]).channels.webhooks
    assert hook.messages == {MessageKind.PAUSED, MessageKind.RESTORED}


@pytest.mark.parametrize(
    ("kind", "values", "place", "says"),
    [
        ("webhooks", HOOK | {"secret": "s3cret-word"}, "webhooks.0.secret", "s"),
        ("webhooks", HOOK | {"secret": {}}, "webhooks.0.secret", "either file or variable"),
        ("webhooks", HOOK | {"secret": {"file": "/a", "variable": "B"}}, "webhooks.0.secret", "ei"),
        (
            "webhooks",
            HOOK | {"secret": {"variable": "GPU_PRUNER_HOOK"}},
            "webhooks.0.secret.variable",
            "are settings; take another name",
        ),
        ("webhooks", HOOK | {"secret": {"variable": "A B"}}, "webhooks.0.secret.variable", "form"),
        ("webhooks", HOOK | {"url": "http://hooks.example.org"}, "webhooks.0.url", "https://"),
        ("webhooks", HOOK | {"url": "https://me:s3cret-word@h/"}, "webhooks.0.url", "has an @"),
        ("webhooks", HOOK | {"url": "ftp://h/"}, "webhooks.0.url", "must begin with"),
        ("webhooks", HOOK | {"url": "http://127.0.0.1/"}, "webhooks.0", "private_addresses: true"),
        ("webhooks", HOOK | {"url": "https://h/#x"}, "webhooks.0.url", "before the #"),
        ("webhooks", HOOK | {"name": "event"}, "webhooks.0.name", "a name of ours"),
        ("webhooks", HOOK | {"name": "none"}, "webhooks.0.name", "a name of ours"),
        ("webhooks", HOOK | {"name": "A b"}, "webhooks.0.name", "form"),
        ("webhooks", HOOK | {"messages": []}, "webhooks.0.messages", "at least 1 item"),
        ("webhooks", HOOK | {"messages": ["alarm"]}, "webhooks.0.messages.0", "must be"),
        ("webhooks", HOOK | {"least_severity": "loud"}, "webhooks.0.least_severity", "must be"),
        ("webhooks", HOOK | {"timeout_seconds": 60}, "webhooks.0.timeout_seconds", "at most 10"),
        ("webhooks", HOOK | {"secret_": "s3cret-word"}, "webhooks.0.secret_", "is no setting"),
        (
            "webhooks",
            HOOK | {"counts_as_delivery": True, "messages": ["paused"]},
            "webhooks.0",
            "takes no warning",
        ),
        ("pagerduty", PAGER | {"url": "http://127.0.0.1"}, "pagerduty.0.url", "https://"),
        ("mail", MAIL | {"to": "team"}, "mail.0.to", "form"),
        ("mail", MAIL | {"sender": "a@b.c\nBcc: d@e.f"}, "mail.0.sender", "form"),
        ("mail", MAIL | {"security": "none"}, "mail.0", "only goes with a loopback address"),
        ("mail", MAIL | {"user": "me"}, "mail.0", "user and password go together"),
        ("mail", MAIL | {"owner_domains": ["a b"]}, "mail.0.owner_domains", "is not a domain"),
        ("mail", MAIL | {"host": "a b"}, "mail.0.host", "form"),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_without_a_secret(
    kind: str, values: dict[str, object], place: str, says: str
) -> None:
    told = refusal(**{kind: [values]})
    assert told.startswith(f"channels.{place}: "), told
    assert says in told
    assert "s3cret-word" not in told


def test_two_channels_have_two_names() -> None:
    assert "two channels are called mail" in refusal(
        mail=[MAIL], webhooks=[HOOK | {"name": "mail"}]
    )


def test_secrets_that_are_not_there_are_told_with_line_and_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(
        "channels:\n  webhooks:\n  - name: sink\n    url: https://hooks.example.org/in\n"
        "    secret: {variable: HOOK}\n    ca_file: /nowhere/ca.crt\n"
    )
    monkeypatch.delenv("HOOK", raising=False)
    with pytest.raises(ConfigurationError) as refused:
        loaded(read_document(file))
    second, first = str(refused.value).splitlines()[-2:]
    assert f"{file}:6:" in first
    assert "/nowhere/ca.crt is not a readable file" in first
    assert f"{file}:5:" in second
    assert "the variable HOOK is empty, or not there" in second


def loaded(document: Document) -> Settings:
    return load([], document=document, files_must_exist=True).settings


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"s3cret-word\nand more", "a line break"),
        (b"s3cret-word\xff", "not a readable text file"),
    ],
)
def test_a_secret_that_cannot_be_one_is_told_without_it(
    tmp_path: Path, content: bytes, says: str
) -> None:
    (tmp_path / "secret").write_bytes(content)
    [hook] = channels(webhooks=[HOOK | {"secret": {"file": tmp_path / "secret"}}]).channels.webhooks
    assert says in hook.secret.problem()
    assert "s3cret-word" not in hook.secret.problem()


def test_a_channel_that_is_added_needs_a_restart() -> None:
    assert taken_over(Settings(), channels(mail=[MAIL])) == Settings()
