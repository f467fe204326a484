from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec import structs
from support.decisions import NOTEBOOK, SERVER
from support.ledgers import A100, H100, a_keeper, cycles, holding
from support.manual_clock import NOON, ManualClock

from gpu_pruner.cli import report as command
from gpu_pruner.errors import ConfigurationError, LedgerError
from gpu_pruner.model.audience import Address, AddressKind, Audience, Person
from gpu_pruner.model.book import Book, Phase
from gpu_pruner.model.plan import Decision
from gpu_pruner.model.verdict import Verdict
from gpu_pruner.model.workload import RootRef
from gpu_pruner.record.ledger.database import Database
from gpu_pruner.record.ledger.usage import usage
from gpu_pruner.record.savings import Cost, SavingsRow, savings
from gpu_pruner.settings.ledger import LedgerSettings
from gpu_pruner.settings.prices import PriceTable, read_prices

HOUR = 3600.0
PRICES = PriceTable.model_validate({"currency": "EUR", "per_gpu_hour": {H100: 2.5}})
HOSTILE = "<img src=x onerror=alert(1)>|[x](javascript:1)\x1b[2J\u202e\"'`"


def owned(decision: Decision, owner: str) -> Decision:
    person = Person(Address(AddressKind.NAME, owner), "for the test")
    told = replace(decision.workload, audience=Audience(people=(person,)))
    return structs.replace(decision, workload=told)


def paused(root: RootRef, gpus: int) -> Decision:
    book = Book(phase=Phase.PAUSED, gpus=gpus)
    before = holding(root, 0)
    workload = replace(before.workload, pods=(), book=book)
    return structs.replace(before, workload=workload, book=book, findings=())


def a_week(settings: LedgerSettings) -> None:
    """An hour at work and idle, then an hour in which the server is paused, by another process."""
    first, second = a_keeper(settings, "first"), a_keeper(settings, "second")
    notebook = owned(holding(NOTEBOOK, 1, model=A100), "alice")
    for told in cycles(
        holding(SERVER, 4, verdict=Verdict.IDLE), notebook, begin=NOON, count=4, every=1200
    ):
        first.take(told)
    busy = owned(holding(NOTEBOOK, 1, model=A100, verdict=Verdict.ACTIVE), "alice")
    for told in cycles(paused(SERVER, 4), busy, begin=NOON + HOUR, count=4, every=1200):
        second.take(told)


def row(name: str, *hours: float, idle: Cost, returned: Cost) -> SavingsRow:
    return SavingsRow(name, *hours, 0, idle_cost=idle, returned_cost=returned)


def test_the_report_is_what_one_counts_by_hand(ledger_settings: LedgerSettings) -> None:
    a_week(ledger_settings)
    found = savings(
        usage(Database(ledger_settings), since=NOON - 7 * 24 * HOUR, until=NOON + 2 * HOUR), PRICES
    )
    nothing = Cost("0.00", 0.0)
    server = row("", 4.0, 4.0, 0.0, 4.0, idle=Cost("10.00", 0.0), returned=Cost("10.00", 0.0))
    bare = row("", 2.0, 1.0, 0.0, 0.0, idle=Cost(None, 1.0), returned=nothing)
    everything = row("", 6.0, 5.0, 0.0, 4.0, idle=Cost("10.00", 1.0), returned=Cost("10.00", 0.0))
    named = structs.replace
    assert found.total == everything
    assert found.namespaces == (named(server, name="team-a"), named(bare, name="team-b"))
    assert found.owners == (named(server, name=""), named(bare, name="alice"))
    assert found.workloads == (
        named(server, name="deployment/team-a/server"),
        named(bare, name="notebook/team-b/notebook-1"),
    )
    assert found.models == (
        named(server, name=H100, false_positives=None),
        named(bare, name=A100, false_positives=None),
    )
    assert found.models_without_price == (A100,)
    assert found.history_begins == "2026-01-31T12:00:00Z"


def test_what_lies_outside_is_not_counted(ledger_settings: LedgerSettings) -> None:
    a_week(ledger_settings)
    database = Database(ledger_settings)
    later = savings(usage(database, since=NOON + HOUR, until=NOON + 2 * HOUR), None)
    assert (later.total.idle_gpu_hours, later.total.returned_gpu_hours) == (0.0, 4.0)
    assert later.models[0].name == H100  # of the hour before, which is outside
    assert later.total.idle_cost is None
    empty = savings(usage(database, since=NOON + 30 * HOUR, until=NOON + 40 * HOUR), None)
    assert (empty.history_begins, empty.workloads) == (None, ())


def test_a_pause_without_a_known_model_has_no_price(tmp_path: Path) -> None:
    settings = LedgerSettings(directory=tmp_path)
    keeper = a_keeper(settings)
    for told in cycles(paused(SERVER, 2), begin=NOON, count=4, every=1200):
        keeper.take(told)
    found = savings(usage(Database(settings), since=NOON, until=NOON + HOUR), PRICES)
    assert found.total.returned_cost == Cost(None, 2.0)
    assert found.models_without_price == ("",)


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A settings file with a ledger in which somebody has a hostile name."""
    keeper = a_keeper(LedgerSettings(directory=tmp_path))
    for one in cycles(owned(holding(SERVER, 2), HOSTILE), begin=NOON, count=4, every=1200):
        keeper.take(one)
    config = tmp_path / "settings.yaml"
    config.write_text(f"ledger:\n  directory: {tmp_path}\n", encoding="utf-8")
    monkeypatch.setattr(command, "clock_from_environment", lambda: ManualClock(NOON + 2 * HOUR))
    return config


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command.report, [str(one) for one in arguments])


def test_json_has_everything(told: Path) -> None:
    found = json.loads(run("--config", told, "--output", "json").stdout)
    assert found["total"]["idleGpuHours"] == 2.0
    assert found["owners"][0]["name"] == HOSTILE.strip()
    assert "idleCost" in found["total"]
    assert found["currency"] is None


def test_money_needs_prices(told: Path, tmp_path: Path) -> None:
    assert "EUR" not in run("--config", told).stdout
    prices = tmp_path / "prices.yaml"
    prices.write_text(f"currency: EUR\nper_gpu_hour:\n  {H100}: 2.5\n", encoding="utf-8")
    answer = run("--config", told, "--prices", prices, "--output", "markdown").stdout
    assert "| Everything | 2\\.0 |" in answer.replace("2.0", "2\\.0")
    assert "5.00" in answer
    prices.write_text("currency: EUR\nper_gpu_hour: {}\n", encoding="utf-8")
    bare = run("--config", told, "--prices", prices).stdout
    assert "2.0 h without price" in bare
    assert f"Without a price: {H100}." in bare


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)


def test_a_hostile_name_is_only_text(told: Path) -> None:
    page = run("--config", told, "--output", "html").stdout
    tags = Tags()
    tags.feed(page)
    assert not tags.tags & {"img", "script", "a"}
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    for output in ("table", "markdown", "html"):
        answer = run("--config", told, "--output", output).stdout
        assert "\x1b[2J" not in answer
        assert "\u202e" not in answer
    written = run("--config", told, "--output", "markdown").stdout
    assert "\\<img src\\=x onerror\\=alert\\(1\\)\\>\\|\\[x\\]\\(javascript\\:1\\)" in written


def test_a_long_table_says_that_it_goes_on(told: Path, tmp_path: Path) -> None:
    keeper = a_keeper(LedgerSettings(directory=tmp_path), "more")
    many = [holding(RootRef("Deployment", "team-a", f"s-{n}", "apps", f"u-{n}"), 1) for n in "abc"]
    for one in cycles(*many, begin=NOON, count=2):
        keeper.take(one)
    for output in ("table", "markdown", "html"):
        answer = run("--config", told, "--top", "1", "--output", output).stdout
        assert "3 more" in answer
        assert "3 more" not in run("--config", told, "--output", output).stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("per_gpu_hour: {}", "currency"),
        ("currency: EUR\nper_gpu_hour:\n  H100: -1", "prices.yaml:3:3: H100: must be a price"),
        ("currency: EUR\nper_gpu_hour:\n  H100: a lot", "prices.yaml:3:3"),
        ("currency: EUR\nper_gpu_hour: {}\nper_hour: 1", "prices.yaml:3:1: per_hour"),
    ],
)
def test_a_wrong_price_table_is_told_with_its_place(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        read_prices(file)
    assert message in str(caught.value)


def test_without_a_ledger_it_says_what_to_set(tmp_path: Path) -> None:
    answer = run()
    assert isinstance(answer.exception, ConfigurationError)
    assert "set ledger.directory or ledger.dsn" in str(answer.exception)
    config = tmp_path / "settings.yaml"
    config.write_text(f"ledger:\n  directory: {tmp_path}\n", encoding="utf-8")
    assert isinstance(run("--config", config).exception, LedgerError)


@pytest.mark.parametrize("since", ["5m", "soon", "-1"])
def test_a_time_that_is_none_is_bad_input(told: Path, since: str) -> None:
    answer = run("--config", told, f"--since={since}")
    assert answer.exit_code == 2
    assert "--since" in answer.output
