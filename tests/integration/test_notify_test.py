"""`gpu-pruner notify test` against servers that receive what it sends."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from support.apart import APART, CHANNELS_PAGE
from support.manual_clock import NOON, ManualClock
from support.pages import PAGES, Block, blocks
from support.receivers import (
    HERE,
    PASSWORD,
    ROUTING_KEY,
    SECRET,
    USER,
    a_mail_server,
    a_pagerduty,
    a_webhook,
    make_certificate,
)
from support.terminal import Terminal, checkout

from gpu_pruner.cli.notifying import tried
from gpu_pruner.notify.samples import ORDER
from gpu_pruner.settings.loading import load_settings


async def test_it_says_of_each_sample_what_arrived_and_why_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "secret").write_text(SECRET)
    async with a_mail_server(None, tls=False) as box, a_webhook(now=NOON) as http:
        mail = {"name": "team-mail", "host": HERE, "port": box.port, "security": "none"}
        mail |= {"sender": "gpu-pruner@example.org", "to": "team@example.org"}
        mail |= {"messages": ["warning"]}
        hook = {"name": "sink", "url": f"http://{HERE}:{http.port}/", "private_addresses": True}
        hook |= {"secret": {"file": tmp_path / "secret"}}
        settings = load_settings({"channels": {"mail": [mail], "webhooks": [hook]}})
        assert await tried(settings, ManualClock()) == 0
        fine = capsys.readouterr().out
        http.status = 500
        assert await tried(settings, ManualClock()) == 1
        failed = capsys.readouterr().out
    assert len(box.mails) == 2, "one warning each time"
    assert [one["kind"] for one in http.bodies] == [kind.value for kind in ORDER] * 2
    assert f"OK   team-mail        warning    mail to team@example.org taken on by {HERE}" in fine
    assert "-    team-mail        paused     not taken, by its settings" in fine
    assert fine.count("OK   sink") == len(ORDER)
    assert failed.count("FAIL sink") == len(ORDER)
    assert "answered with HTTP 500" in failed


async def test_without_channels_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert await tried(load_settings({}), ManualClock()) == 0
    assert "No channel is set beside Events" in capsys.readouterr().out


async def test_the_page_can_be_followed_and_a_receiver_verifies_as_it_says(tmp_path: Path) -> None:
    [page] = [one for one in PAGES if one.name == CHANNELS_PAGE]
    certificate = make_certificate(tmp_path)
    password, key = tmp_path / "password", tmp_path / "key"
    password.write_text(PASSWORD)
    key.write_text(ROUTING_KEY)
    async with (
        a_mail_server(certificate, tls=False) as box,
        a_pagerduty(certificate) as pager,
        a_webhook(now=time.time()) as hook,
    ):
        hook.status = 503
        trusted = f"ca_file: {certificate.authority}\n    "
        terminal = Terminal(
            checkout(tmp_path),
            environment={"HOOK_SECRET": SECRET},
            instead={
                "host: smtp.example.org": f"{trusted}port: {box.port}\n    host: {HERE}",
                "by smtp.example.org": f"by {HERE}",
                "user: gpu-pruner": f"user: {USER}",
                "/secrets/mail/password": str(password),
                "/secrets/pagerduty/key": str(key),
                "routing_key:": f"{trusted}url: https://{HERE}:{pager.port}\n    routing_key:",
                "url: https://audit.example.org/gpu": (
                    f"private_addresses: true\n    url: http://{HERE}:{hook.port}/gpu"
                ),
            },
            ends={"gpu-pruner notify test": 1},
        )
        with terminal:
            for block in blocks(page):
                await asyncio.to_thread(terminal.follow, block, apart=APART)
    assert len(box.mails) == len(ORDER)
    assert hook.asked
    assert not pager.problems + hook.problems
    for _, headers, body in hook.asked:
        verify_as_documented(
            next(one for one in blocks(page) if one.language == "python"), headers, body
        )


def verify_as_documented(block: Block, headers: dict[str, str], body: bytes) -> None:
    told: dict[str, object] = {}
    exec(compile(block.text, block.place, "exec"), told)  # noqa: S102 - our own page
    is_ours = told["is_ours"]
    assert callable(is_ours)
    names = ("X-GPU-Pruner-Timestamp", "X-GPU-Pruner-Signature")
    sent = {name: headers[name.lower()] for name in names}
    assert is_ours(SECRET, sent, body)
    assert not is_ours(SECRET, sent, body + b" ")
    assert not is_ours("another", sent, body)
