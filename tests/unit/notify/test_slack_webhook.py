from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
import requests
from support.prometheus import free_port
from support.slack_webhook import SECRET, SlackWebhook

from gpu_pruner.errors import NotificationError
from gpu_pruner.notify import slack_webhook
from gpu_pruner.notify.slack_webhook import post

MESSAGE = json.dumps({"text": "hello"}).encode()


@pytest.fixture
def webhook() -> Iterator[SlackWebhook]:
    with SlackWebhook() as running:
        yield running


def refused(address: str, message: bytes = MESSAGE) -> str:
    with pytest.raises(NotificationError) as told:
        post(address, message)
    assert SECRET not in str(told.value)
    assert told.value.__cause__ is None  # whose words repeat the address
    assert told.value.__suppress_context__ or told.value.__context__ is None
    return str(told.value)


def test_a_message_arrives_once(webhook: SlackWebhook) -> None:
    post(webhook.url, MESSAGE)
    assert webhook.taken == [{"text": "hello"}]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((404, "no_service"), r"404 no_service\): it was revoked"),
        ((403, "action_prohibited"), r"403 action_prohibited\): it was revoked"),
        ((410, "channel_is_archived"), r"410 channel_is_archived\): it was revoked"),
        ((400, "invalid_blocks"), r"did not take the message \(400 invalid_blocks\)"),
        ((429, "rate_limited"), r"no more messages now \(429 rate_limited\)"),
        ((500, "rollup_error"), r"did not take the message \(500 rollup_error\)"),
        ((200, "<html>welcome</html>"), "not as Slack does"),
        ((200, ""), "not as Slack does"),
        ((502, f"no route to {SECRET}"), r"did not take the message \(502\)"),
        ((500, "x" * 100_000), r"did not take the message \(500\)"),
    ],
)
def test_what_is_not_taken_is_told_in_one_sentence(
    webhook: SlackWebhook, answer: tuple[int, str], says: str
) -> None:
    webhook.answers = [answer]
    assert re.search(says, refused(webhook.url))
    assert webhook.asked == 1


def test_a_redirect_is_not_followed(webhook: SlackWebhook) -> None:
    with SlackWebhook() as other:
        webhook.answers, webhook.location = [(307, "")], other.url
        assert "elsewhere (307)" in refused(webhook.url)
        assert other.asked == 0


def test_a_wrong_secret_is_refused_as_slack_does(webhook: SlackWebhook) -> None:
    assert "404 no_service" in refused(webhook.url.replace("B00", "B01"))


def test_who_hangs_up_or_is_not_there_is_told_without_the_address(webhook: SlackWebhook) -> None:
    webhook.deaf = True
    assert "cannot be reached (ConnectionError)" in refused(webhook.url)
    nobody = f"http://127.0.0.1:{free_port()}/services/{SECRET}"
    assert "cannot be reached (ConnectionError)" in refused(nobody)


def test_who_does_not_answer_is_not_waited_for(
    webhook: SlackWebhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: object, **given: object) -> None:
        assert given["timeout"] == slack_webhook.ANSWER_SECONDS
        raise requests.exceptions.ReadTimeout(f"no answer of {webhook.url}")

    monkeypatch.setattr(requests.Session, "post", silent)
    assert refused(webhook.url) == "the webhook did not answer in 10 s"


def test_who_answers_byte_by_byte_is_not_waited_for(
    webhook: SlackWebhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slack_webhook, "ANSWER_SECONDS", 0.3)
    with webhook.dripping():
        assert "did not answer in 0.3 s" in refused(webhook.url)


@pytest.mark.parametrize("host", ["a..b", f"{'a' * 70}.example"])
def test_a_host_that_cannot_be_a_name_is_told_without_the_address(host: str) -> None:
    assert "cannot be reached" in refused(f"https://{host}/services/{SECRET}")


def test_an_untrusted_certificate_is_told_as_one(
    webhook: SlackWebhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    def untrusted(*_: object, **__: object) -> None:
        raise requests.exceptions.SSLError(f"self-signed: {webhook.url}")

    monkeypatch.setattr(requests.Session, "post", untrusted)
    assert "certificate is not trusted" in refused(webhook.url)


def test_no_credentials_of_this_machine_go_along(
    webhook: SlackWebhook, monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    secrets = tmp_path / "netrc"
    secrets.write_text("machine 127.0.0.1 login alice password s3cret\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(secrets))
    post(webhook.url, MESSAGE)
    assert webhook.headers[-1].get("Authorization") is None
