"""Weekly reports from the ledger to a webhook that refuses what Slack refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support.decisions import NOTEBOOK, SERVER
from support.ledgers import DAY, H100, a_keeper, cycles, holding
from support.manual_clock import NOON, ManualClock
from support.slack_webhook import SECRET, SlackWebhook

from gpu_pruner.cli import posting
from gpu_pruner.cli.commands import command_line
from gpu_pruner.cli.posting import PostingDesk, weekly_report
from gpu_pruner.errors import ConfigurationError
from gpu_pruner.loop.weekly import WeeklyReport
from gpu_pruner.record.board import Board
from gpu_pruner.record.ledger.postings import CLAIM_SECONDS
from gpu_pruner.settings.ledger import LedgerSettings
from gpu_pruner.settings.schema import Settings

WEEK = 7 * DAY
LOOK = 30.0


@pytest.fixture
def webhook() -> Iterator[SlackWebhook]:
    with SlackWebhook() as running:
        yield running


@pytest.fixture
def wanted(ledger_settings: LedgerSettings, webhook: SlackWebhook, tmp_path: Path) -> Settings:
    """Settings of a controller with three hours of history, two of which are in the first week."""
    keeper = a_keeper(ledger_settings)
    for told in cycles(holding(SERVER, 4), begin=NOON - 7200, count=4, every=1200):
        keeper.take(told)
    (tmp_path / "webhook").write_text(f"{webhook.url}\n", encoding="utf-8")
    prices = tmp_path / "prices.yaml"
    prices.write_text(f"currency: EUR\nper_gpu_hour:\n  {H100}: 2.5\n", encoding="utf-8")
    day = datetime.fromtimestamp(NOON, UTC).strftime("%a")
    report = {
        "schedule": f"{day} 13:00 Europe/Berlin",  # noon in UTC, in winter
        "webhook_file": tmp_path / "webhook",
        "prices_file": prices,
    }
    return Settings.model_validate({"ledger": ledger_settings.model_dump(), "report": report})


def replica(settings: Settings, clock: ManualClock) -> WeeklyReport:
    moment = settings.report.moment
    assert moment is not None
    return WeeklyReport(
        last_due=moment.last, desk=PostingDesk(settings), clock=clock, leads=lambda: True
    )


async def look(clock: ManualClock, end: float, *replicas: WeeklyReport) -> None:
    while clock.at < end:
        clock.at += LOOK
        for one in replicas:
            await one.attempt()


async def test_two_replicas_that_both_believe_to_lead_post_one_report_a_week(
    wanted: Settings, webhook: SlackWebhook
) -> None:
    clock = ManualClock(NOON - 60)
    await look(clock, NOON + 300, replica(wanted, clock), replica(wanted, clock))
    (message,) = webhook.taken
    assert "*4.0* of 4.0 held GPU hours were idle (EUR 10.00)" in message["text"]
    clock.at = NOON + WEEK - 60
    await look(clock, NOON + WEEK + 300, replica(wanted, clock), replica(wanted, clock))
    assert len(webhook.taken) == 2


async def test_restarts_at_any_moment_post_nothing_again(
    wanted: Settings, webhook: SlackWebhook
) -> None:
    clock = ManualClock(NOON - 60)
    while clock.at < NOON + 1800:
        await look(clock, clock.at + LOOK, replica(wanted, clock))
    assert webhook.asked == len(webhook.taken) == 1


async def test_who_dies_between_post_and_note_has_the_report_come_again(
    wanted: Settings, webhook: SlackWebhook
) -> None:
    """Rather twice than never: nobody can know whether the dead one's post arrived."""
    dead = PostingDesk(wanted)
    assert dead.claim(NOON, now=NOON)
    dead.post(NOON)
    clock = ManualClock(NOON + LOOK)
    heir = replica(wanted, clock)
    await look(clock, NOON + CLAIM_SECONDS - LOOK, heir)
    assert len(webhook.taken) == 1
    await look(clock, NOON + DAY, heir)
    assert len(webhook.taken) == 2


async def test_a_webhook_that_is_away_for_an_hour_gets_it_once(
    wanted: Settings, webhook: SlackWebhook
) -> None:
    clock = ManualClock(NOON - 60)
    webhook.answers = [(503, "")] * 5
    await look(clock, NOON + 7200, replica(wanted, clock), replica(wanted, clock))
    assert len(webhook.taken) == 1
    assert webhook.asked == 6


async def test_what_happened_after_the_due_moment_is_next_weeks(
    wanted: Settings, webhook: SlackWebhook
) -> None:
    keeper = a_keeper(wanted.ledger, "later")
    for told in cycles(holding(NOTEBOOK, 1), begin=NOON, count=4, every=1200):
        keeper.take(told)
    clock = ManualClock(NOON + 4 * 3600)
    await look(clock, clock.at + LOOK, replica(wanted, clock))
    clock.at = NOON + WEEK
    await look(clock, clock.at + LOOK, replica(wanted, clock))
    first, second = webhook.taken
    assert "*4.0* of 4.0 held" in first["text"]
    assert "*1.0* of 1.0 held" in second["text"]


def test_a_schedule_without_a_ledger_is_refused_at_start(webhook: SlackWebhook) -> None:
    report = {"schedule": "Fri 17:00 UTC", "webhook": webhook.url}
    settings = Settings.model_validate({"report": report})
    with pytest.raises(ConfigurationError, match="report.schedule: needs a ledger"):
        weekly_report(settings, ManualClock(), Board())
    assert weekly_report(Settings(), ManualClock(), Board()) is None


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is no address of a webhook"),
        (f"http://hooks.slack.com/services/{SECRET}", "must begin with https://"),
        (f"https://hooks.slack.com/services/{SECRET}\nmore", "is no address of a webhook"),
        (f"https://alice:s3cret@hooks.slack.com/{SECRET}", "has a user name or a # in it"),
        (f"ftp://hooks.slack.com/{SECRET}", "is no address of a webhook"),
        (f"https://hooks.slack.com:99999/{SECRET}", "is no address of a webhook"),
        (f"https://hooks.slack.com/{SECRET}ü", "is not plain text"),
    ],
)
def test_a_file_without_an_address_is_told_without_its_content(
    tmp_path: Path, content: str, says: str
) -> None:
    file = tmp_path / "webhook"
    file.write_text(content, encoding="utf-8")
    settings = Settings.model_validate({"report": {"webhook_file": file}})
    with pytest.raises(ConfigurationError, match=says) as told:
        posting.address_of(settings.report)
    assert SECRET not in str(told.value)


@pytest.fixture
def config(wanted: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same settings as a file, and a clock that stands at noon."""
    file = tmp_path / "settings.yaml"
    ledger, report = wanted.ledger, wanted.report
    dsn = "" if ledger.dsn is None else f"  dsn: {ledger.dsn.get_secret_value()}\n"
    file.write_text(
        f"ledger:\n  directory: {ledger.directory}\n{dsn}"
        f"report:\n  webhook_file: {report.webhook_file}\n  prices_file: {report.prices_file}\n",
        encoding="utf-8",
    )
    monkeypatch.setattr("gpu_pruner.cli.report.clock_from_environment", lambda: ManualClock(NOON))
    return file


def run(config: Path, *arguments: str) -> Result:
    return CliRunner().invoke(command_line, ["report", "--config", str(config), *arguments])


def test_the_command_posts_what_its_dry_run_shows(config: Path, webhook: SlackWebhook) -> None:
    shown = run(config, "--dry-run")
    assert webhook.asked == 0
    assert run(config, "--post", "--dry-run").output == shown.output
    posted = run(config, "--post")
    assert (posted.exit_code, posted.output) == (0, "The report was posted.\n")
    assert webhook.taken == [json.loads(shown.stdout)]
    assert "EUR 10.00" in shown.stdout


def test_a_refused_post_is_told_without_the_address(config: Path, webhook: SlackWebhook) -> None:
    webhook.answers = [(404, "no_service")]
    refused: Any = run(config, "--post")
    assert refused.exit_code == 1
    assert "404 no_service" in str(refused.exception) + refused.output
    assert SECRET not in str(refused.exception) + refused.output


def test_no_webhook_is_bad_input_before_anything_is_read(config: Path, tmp_path: Path) -> None:
    config.write_text(f"ledger:\n  directory: {tmp_path / 'none'}\n", encoding="utf-8")
    refused = run(config, "--post")
    assert "no webhook is set: report.webhook_file" in str(refused.exception) + refused.output
