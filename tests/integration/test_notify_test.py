"""`gpu-pruner notify test` against servers that receive what it sends."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.manual_clock import NOON, ManualClock
from support.receivers import HERE, SECRET, a_mail_server, a_webhook

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
