"""What the weekly report is made of, where it goes, and what remembers it: settings to parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.loop.weekly import WeeklyReport
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.units import DAY, Seconds, Timestamp
from gpu_pruner.notify.slack_webhook import post
from gpu_pruner.record.board import Board
from gpu_pruner.settings.prices import read_prices
from gpu_pruner.settings.report import ReportSettings, webhook_address
from gpu_pruner.settings.schema import Settings

if TYPE_CHECKING:
    from gpu_pruner.record.savings import Savings

WEEK: Seconds = 7 * DAY
TOP = 10
"""Rows of each table in a message, where nothing else was asked for."""


def address_of(settings: ReportSettings) -> str:
    """Return the address of the webhook, from its file as it is now.

    Raises:
        ConfigurationError: there is none, or it is not one; never with what was found.
    """
    if settings.webhook is not None:
        return settings.webhook.get_secret_value()
    if settings.webhook_file is None:
        raise ConfigurationError("no webhook is set: report.webhook_file")
    place = f"report.webhook_file {settings.webhook_file}"
    try:
        return webhook_address(settings.webhook_file.read_text(encoding="ascii"))
    except OSError as error:
        raise ConfigurationError(f"cannot be read: {error.strerror}", path=place) from None
    except UnicodeDecodeError:
        raise ConfigurationError("is not plain text", path=place) from None
    except ValueError as error:
        raise ConfigurationError(str(error), path=place) from None


def report_until(settings: Settings, until: Timestamp, *, length: Seconds = WEEK) -> Savings:
    """Return the report on the time before a moment, from the ledger. Blocks.

    Raises:
        LedgerError: the database cannot be read.
        ConfigurationError: no history is kept, or the prices are wrong.
    """
    # Only who wants a report loads the database's libraries.
    from gpu_pruner.record.ledger.database import Database  # noqa: PLC0415
    from gpu_pruner.record.ledger.usage import usage  # noqa: PLC0415
    from gpu_pruner.record.savings import savings  # noqa: PLC0415

    if not settings.ledger.is_on:
        raise ConfigurationError("no history is kept: set ledger.directory or ledger.dsn")
    file = settings.report.prices_file
    prices = read_prices(file) if file else None
    database = Database(settings.ledger)
    try:
        return savings(usage(database, since=until - length, until=until), prices)
    finally:
        database.close()


class PostingDesk:
    """Makes, posts and remembers the weekly reports of one controller; see `loop.weekly`."""

    def __init__(self, settings: Settings) -> None:
        from gpu_pruner.record.ledger.database import Database  # noqa: PLC0415 - as above
        from gpu_pruner.record.ledger.postings import Postings  # noqa: PLC0415 - as above

        self._settings = settings
        self._postings = Postings(Database(settings.ledger))

    def claim(self, due_at: Timestamp, *, now: Timestamp) -> bool | None:
        """Return whether a report is ours to post; None where it was posted."""
        from gpu_pruner.record.ledger.postings import Claim  # noqa: PLC0415 - as above

        claim = self._postings.claim(due_at, now=now)
        return None if claim is Claim.POSTED else claim is Claim.OURS

    def post(self, due_at: Timestamp) -> None:
        """Make and post the report of the week before a moment."""
        from gpu_pruner.record.savings_slack import slack_message  # noqa: PLC0415 - as above

        address = address_of(self._settings.report)
        post(address, slack_message(report_until(self._settings, due_at), top=TOP))

    def note(self, due_at: Timestamp, *, now: Timestamp) -> None:
        """Remember that a report was posted."""
        self._postings.note(due_at, now=now)

    def give_up(self, due_at: Timestamp) -> None:
        """Let another try."""
        self._postings.give_up(due_at)


def weekly_report(settings: Settings, clock: Clock, board: Board) -> WeeklyReport | None:
    """Return what posts the weekly report; None where it is not wanted.

    Raises:
        ConfigurationError: it is wanted and no history is kept, or the webhook is none.
    """
    moment = settings.report.moment
    if moment is None:
        return None
    if not settings.ledger.is_on:
        told = "needs a ledger: set ledger.directory or ledger.dsn"
        raise ConfigurationError(told, path="report.schedule")
    address_of(settings.report)
    return WeeklyReport(
        last_due=moment.last, desk=PostingDesk(settings), clock=clock, leads=lambda: board.leading
    )
