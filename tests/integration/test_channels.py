"""Every channel against a server that speaks its protocol and refuses what the real one refuses."""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import replace
from email import message_from_bytes, policy
from pathlib import Path

import pytest
from support.decisions import NOTEBOOK, a_decision
from support.manual_clock import NOON, ManualClock
from support.receivers import (
    HERE,
    PASSWORD,
    ROUTING_KEY,
    SECRET,
    USER,
    Certificate,
    a_mail_server,
    a_pagerduty,
    a_webhook,
    make_certificate,
)

from gpu_pruner.errors import ConfigurationError, NotificationError
from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.orders import MessageKind
from gpu_pruner.model.rules import Mode
from gpu_pruner.notify.channel import Audience
from gpu_pruner.notify.mail import MailChannel
from gpu_pruner.notify.messages import Message, message_for
from gpu_pruner.notify.pagerduty import PagerDutyChannel
from gpu_pruner.notify.webhook import WebhookChannel
from gpu_pruner.settings.channels import MailSettings, PagerDutySettings, WebhookSettings

WARNED = Book(phase=Phase.WARNED, nominated_at=NOON - 60, warned_at=NOON, pause_at=NOON + 900)
NOBODY = Audience()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def secrets(tmp_path: Path) -> dict[str, dict[str, str]]:
    found = {}
    held = {"hook": SECRET, "key": ROUTING_KEY, "password": PASSWORD, "wrong": "not-the-secret"}
    for name, text in held.items():
        (tmp_path / name).write_text(f"{text}\n")
        found[name] = {"file": str(tmp_path / name)}
    return found


def told(kind: MessageKind = MessageKind.WARNING, *, mode: Mode = Mode.SCALE_DOWN) -> Message:
    return message_for(a_decision(book=WARNED), kind, mode=mode, now=NOON)


def a_hook(port: int, secret: dict[str, str], **more: object) -> WebhookChannel:
    url = more.pop("url", f"http://{HERE}:{port}/hook?team=a")
    values = {"name": "sink", "url": url, "secret": secret, "private_addresses": True} | more
    settings = WebhookSettings.model_validate(values)
    return WebhookChannel(settings, cluster="east", clock=ManualClock())


async def refusal(channel, message: Message | None = None, to: Audience = NOBODY) -> str:
    with pytest.raises(NotificationError) as refused:
        await channel.send(message or told(), to)
    text = str(refused.value)
    for secret in (SECRET, ROUTING_KEY, PASSWORD, "not-the-secret"):
        assert secret not in text
    return text


async def test_a_webhook_is_posted_in_a_way_that_its_receiver_can_verify(secrets) -> None:
    async with a_webhook(now=NOON) as http:
        channel = a_hook(http.port, secrets["hook"])
        assert await channel.send(told(), Audience("alice")) == "HTTP 200"
        await channel.close()
    assert http.problems == []
    ((path, headers, _),), (body,) = http.asked, http.bodies
    assert path == "/hook"
    assert headers["idempotency-key"] == body["id"] == told().key
    assert {key: body[key] for key in ("version", "kind", "cluster", "owner", "pauseAt")} == {
        "version": 1,
        "kind": "warning",
        "cluster": "east",
        "owner": "alice",
        "pauseAt": "2026-01-31T12:15:00Z",
    }
    assert body["workload"] == {
        "group": "apps",
        "kind": "Deployment",
        "namespace": "team-a",
        "name": "server",
        "uid": "uid-d",
    }


async def test_a_webhook_that_was_signed_with_another_secret_is_refused(secrets) -> None:
    async with a_webhook(now=NOON) as http:
        assert "HTTP 403" in await refusal(a_hook(http.port, secrets["wrong"]))
    assert http.problems == ["the signature is wrong"]


async def test_a_message_that_is_sent_again_is_dated_anew_and_has_the_same_key(secrets) -> None:
    async with a_webhook(now=NOON + 600) as http:
        channel = a_hook(http.port, secrets["hook"])
        await refusal(channel)
        channel._clock = ManualClock(NOON + 600)
        await channel.send(told(), NOBODY)
    assert http.problems == ["it is too old"]
    first, second = (headers["idempotency-key"] for _, headers, _ in http.asked)
    assert first == second


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed(secrets, status: int) -> None:
    async with a_webhook(now=NOON) as elsewhere, a_webhook(now=NOON) as http:
        http.status, http.headers = status, {"Location": f"http://{HERE}:{elsewhere.port}/"}
        assert "redirect" in await refusal(a_hook(http.port, secrets["hook"]))
    assert elsewhere.asked == []


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
async def test_an_answer_that_is_not_2xx_confirms_nothing(secrets, status: int) -> None:
    async with a_webhook(now=NOON) as http:
        http.status = status
        assert f"HTTP {status}" in await refusal(a_hook(http.port, secrets["hook"]))


async def test_a_webhook_that_never_answers_is_given_up(secrets) -> None:
    async with a_webhook(now=NOON) as http:
        http.is_silent = True
        channel = a_hook(http.port, secrets["hook"], timeout_seconds=0.05)
        assert "no answer within 0.05 s" in await refusal(channel)


async def test_a_port_at_which_nobody_listens_is_told_as_such(secrets) -> None:
    with socket.create_server((HERE, 0)) as taken:
        port = taken.getsockname()[1]
    assert "refuses connections" in await refusal(a_hook(port, secrets["hook"]))


async def test_a_webhook_whose_certificate_nobody_vouches_for_gets_nothing(
    secrets, certificate: Certificate
) -> None:
    async with a_webhook(now=NOON, certificate=certificate) as http:
        url = f"https://{HERE}:{http.port}/"
        await refusal(a_hook(0, secrets["hook"], url=url))
        assert http.asked == []
        trusting = a_hook(0, secrets["hook"], url=url, ca_file=certificate.authority)
        assert await trusting.send(told(), NOBODY) == "HTTP 200"


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "[::1]", "2130706433", "127.1", "0x7f.1", "localhost", "0.0.0.0"),  # noqa: S104 - an address to go to
        *("[::ffff:127.0.0.1]", "[::]"),
    ],
)
async def test_a_private_address_is_not_connected_to_however_it_is_written(
    secrets, host: str
) -> None:
    async with a_webhook(now=NOON) as http:
        values = {"name": "sink", "url": f"https://{host}:{http.port}/", "secret": secrets["hook"]}
        settings = WebhookSettings.model_construct(
            **WebhookSettings.model_validate(values | {"private_addresses": True}).__dict__
            | {"private_addresses": False}
        )
        channel = WebhookChannel(settings, cluster="", clock=ManualClock())
        assert "private" in await refusal(channel)
    assert http.asked == []


def a_pager(port: int, key: dict[str, str], authority: Path, **more: object) -> PagerDutyChannel:
    values = {"name": "pager", "routing_key": key, "url": f"https://{HERE}:{port}"}
    settings = PagerDutySettings.model_validate({**values, "ca_file": authority, **more})
    return PagerDutyChannel(settings, cluster="east")


async def test_an_alert_is_triggered_by_a_warning_and_resolved_by_every_end(
    secrets, certificate: Certificate
) -> None:
    async with a_pagerduty(certificate) as http:
        channel = a_pager(http.port, secrets["key"], certificate.authority)
        for kind in MessageKind:
            assert channel.takes(kind)
            await channel.send(told(kind), NOBODY)
        await channel.close()
    assert http.problems == []
    actions = dict(zip(MessageKind, (one["event_action"] for one in http.bodies), strict=True))
    assert {kind for kind, action in actions.items() if action == "trigger"} == {
        MessageKind.WARNING,
        MessageKind.REMINDER,
    }
    assert {one["dedup_key"] for one in http.bodies} == {
        "gpu-pruner/east/Deployment/team-a/server/idle"
    }
    assert http.bodies[0]["payload"]["severity"] == "warning"


async def test_a_rehearsal_wakes_nobody_up(secrets, certificate: Certificate) -> None:
    async with a_pagerduty(certificate) as http:
        channel = a_pager(http.port, secrets["key"], certificate.authority)
        await channel.send(told(mode=Mode.DRY_RUN), NOBODY)
        await channel.close()
    assert http.bodies[0]["payload"]["severity"] == "info"


@pytest.mark.parametrize("status", [400, 401, 403, 429, 500, 502, 503])
async def test_what_pagerduty_refuses_is_told_at_once_and_tried_once(
    secrets, certificate: Certificate, status: int
) -> None:
    async with a_pagerduty(certificate) as http:
        http.status = status
        channel = a_pager(http.port, secrets["key"], certificate.authority)
        assert f"HTTP {status}" in await refusal(channel)
        await channel.close()
    assert len(http.asked) == 1


async def test_a_wrong_routing_key_is_not_repeated(secrets, certificate: Certificate) -> None:
    async with a_pagerduty(certificate) as http:
        channel = a_pager(http.port, secrets["wrong"], certificate.authority)
        assert "HTTP 403" in await refusal(channel)
        await channel.close()


async def test_a_pagerduty_that_nobody_vouches_for_or_that_is_silent_or_away_gets_no_alert(
    secrets, certificate: Certificate, tmp_path: Path
) -> None:
    other = make_certificate(tmp_path)
    async with a_pagerduty(certificate) as http:
        channel = a_pager(http.port, secrets["key"], other.authority)
        assert "no answer from PagerDuty" in await refusal(channel)
        assert http.asked == []
        await channel.close()
        http.is_silent = True
        silent = a_pager(http.port, secrets["key"], certificate.authority, timeout_seconds=0.1)
        assert "no answer from PagerDuty" in await refusal(silent)
        await silent.close()
    away = a_pager(http.port, secrets["key"], certificate.authority)
    assert "no answer from PagerDuty" in await refusal(away)
    await away.close()


def a_mail(port: int, **more: object) -> MailChannel:
    values = {"name": "mail", "host": HERE, "port": port, "sender": "gpu-pruner@example.org"}
    values |= {"to": "team@example.org", "owner_domains": ["lab.example.org"]}
    return MailChannel(MailSettings.model_validate(values | more), cluster="east")


def test_nothing_in_the_name_of_a_cluster_ends_a_header() -> None:
    values = {"name": "mail", "host": HERE, "sender": "p@example.org", "to": "team@example.org"}
    channel = MailChannel(MailSettings.model_validate(values), cluster="east\r\nBcc: a@b.example")
    mail = channel.mail_of(told(), receiver="team@example.org")
    assert mail["Subject"].startswith("[east Bcc: a@b.example] Deployment")
    assert mail["Bcc"] is None


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_a_mail_is_handed_over_encrypted_and_with_a_login(
    secrets, certificate: Certificate, security: str
) -> None:
    login = {"user": USER, "password": secrets["password"], "ca_file": certificate.authority}
    async with a_mail_server(certificate, tls=security == "tls") as box:
        channel = a_mail(box.port, security=security, **login)
        confirmed = await channel.send(told(), Audience("alice@lab.example.org"))
        await channel.send(told(), NOBODY)
        wrong = a_mail(box.port, security=security, **login | {"password": secrets["wrong"]})
        assert "refused our login (535)" in await refusal(wrong)
        stranger = a_mail(box.port, security=security)
        await refusal(stranger)
    assert confirmed == f"mail to alice@lab.example.org taken on by {HERE}"
    assert [to for to, _ in box.mails] == [["alice@lab.example.org"], ["team@example.org"]]
    mail = message_from_bytes(box.mails[0][1], policy=policy.default)
    assert (mail["From"], mail["To"]) == ("gpu-pruner@example.org", "alice@lab.example.org")
    assert mail["Subject"].startswith("[east] Deployment team-a/server: idle on 4 GPUs")
    assert mail.get_content_type() == "text/plain"
    assert "To keep it for now: kubectl" in mail.get_content()


async def test_a_repeat_is_the_same_mail_and_the_end_is_in_its_thread(secrets) -> None:
    async with a_mail_server(None, tls=False) as box:
        channel = a_mail(box.port, security="none")
        for kind in (MessageKind.WARNING, MessageKind.WARNING, MessageKind.CANCELLED):
            await channel.send(told(kind), NOBODY)
    first, repeat, end = (message_from_bytes(one) for _, one in box.mails)
    assert first["Message-ID"] == repeat["Message-ID"] != end["Message-ID"]
    assert first["References"] == end["References"]


@pytest.mark.parametrize(
    "owner",
    [
        "alice",
        "victim@elsewhere.example",
        "a@lab.example.org.evil.example",
        "a@evil.example, b@lab.example.org",
        "a@lab.example.org\nBcc: victim@elsewhere.example",
        "a@lab.example.org\r\n\r\nhello",
        '"a b"@lab.example.org',
        "<a@lab.example.org>",
        "a@[127.0.0.1]",
        "é@lab.example.org",
        "x" * 300 + "@lab.example.org",
        "@lab.example.org",
        "a@LAB.example.org\x00",
    ],
)
async def test_an_annotation_that_is_not_an_allowed_address_reaches_the_team(owner: str) -> None:
    async with a_mail_server(None, tls=False) as box:
        await a_mail(box.port, security="none").send(told(), Audience(owner))
    ((receivers, content),) = box.mails
    assert receivers == ["team@example.org"]
    assert set(message_from_bytes(content).keys()) == {
        *("From", "To", "Subject", "Date", "Message-ID", "References", "Auto-Submitted"),
        *("Content-Type", "Content-Transfer-Encoding", "MIME-Version", "X-Peer", "X-MailFrom"),
        "X-RcptTo",
    } - {"X-Peer", "X-MailFrom", "X-RcptTo"}


async def test_names_with_line_breaks_and_mark_up_stay_in_the_subject() -> None:
    root = replace(NOTEBOOK, name="a\r\nBcc: victim@elsewhere.example\r\n\r\n<b>")
    message = message_for(a_decision(root, book=WARNED), MessageKind.WARNING,
                          mode=Mode.SCALE_DOWN, now=NOON)  # fmt: skip
    async with a_mail_server(None, tls=False) as box:
        await a_mail(box.port, security="none").send(message, NOBODY)
    mail = message_from_bytes(box.mails[0][1], policy=policy.default)
    assert mail["Bcc"] is None
    assert "Bcc: victim@elsewhere.example (b)" in mail["Subject"]


async def test_a_mail_that_the_server_does_not_take_on_is_no_delivery() -> None:
    async with a_mail_server(None, tls=False) as box:
        box.refuses = f"554 no, and your password is {PASSWORD}"
        assert (
            await refusal(a_mail(box.port, security="none")) == "the mail server answered with 554"
        )
    assert "mail server" in await refusal(a_mail(box.port, security="none"))


async def test_a_server_without_starttls_gets_neither_mail_nor_password(secrets) -> None:
    async with a_mail_server(None, tls=False) as box:
        channel = a_mail(box.port, user=USER, password=secrets["password"])
        await refusal(channel)
    assert (box.mails, box.logins) == ([], [])


async def test_a_mail_server_that_nobody_vouches_for_gets_nothing(
    secrets, certificate: Certificate
) -> None:
    async with a_mail_server(certificate, tls=False) as box:
        await refusal(a_mail(box.port, user=USER, password=secrets["password"]))
    assert (box.mails, box.logins) == ([], [])


async def test_a_secret_is_read_anew_for_every_message(secrets, tmp_path: Path) -> None:
    async with a_webhook(now=NOON) as http:
        channel = a_hook(http.port, secrets["wrong"])
        await refusal(channel)
        (tmp_path / "wrong").write_text(SECRET)
        assert await channel.send(told(), NOBODY) == "HTTP 200"
        (tmp_path / "wrong").unlink()
        assert "secret cannot be read" in await refusal(channel)


def test_a_ca_bundle_that_is_none_is_refused_before_anything_is_sent(
    secrets, tmp_path: Path
) -> None:
    (tmp_path / "ca").write_text("no certificate")
    with pytest.raises(ConfigurationError, match="cannot be used as a CA bundle"):
        a_hook(1, secrets["hook"], ca_file=tmp_path / "ca")


async def test_a_message_can_be_given_up_while_it_is_on_its_way(
    secrets, certificate: Certificate
) -> None:
    async with a_webhook(now=NOON) as http:
        http.is_silent = True
        sending = asyncio.create_task(a_hook(http.port, secrets["hook"]).send(told(), NOBODY))
        await http.arrived.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
    assert json.loads(http.asked[0][2])["id"] == told().key
