from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import structs
from support.slack_webhook import fault

from gpu_pruner.record.savings import Cost, Savings, SavingsRow
from gpu_pruner.record.savings_slack import slack_message


def row(
    name: str, idle: float = 4.0, returned: float = 2.5, money: str | None = None
) -> SavingsRow:
    cost = Cost(money, 0.0) if money else None
    return SavingsRow(name, 10.0, idle, 1.0, returned, 0, idle_cost=cost, returned_cost=cost)


REPORT = Savings(
    begin="2026-11-24T17:00:00Z",
    end="2026-12-01T17:00:00Z",
    history_begins="2026-11-24T17:00:12Z",
    currency=None,
    total=row(""),
    namespaces=(row("team-a"), row("team-b", 0.0, 0.0)),
    owners=(row("alice"), row("")),
    workloads=(row("deployment/team-a/finetune"),),
    models=(row("NVIDIA H100 80GB HBM3"), row("")),
    models_without_price=(),
)


def message(report: Savings, *, top: int = 10) -> Any:
    told = json.loads(slack_message(report, top=top))
    assert fault(told) == ""
    return told


def texts(told: Any) -> list[str]:
    found = [one["text"]["text"] for one in told["blocks"] if "text" in one]
    return [*found, *(one["text"] for one in told["blocks"][-1]["elements"])]


def test_the_sums_are_in_the_text_and_in_the_first_section() -> None:
    told = message(REPORT)
    says = "*4.0* of 10.0 held GPU hours were idle; *2.5* were returned by pauses."
    assert told["text"] == f"GPU hours from 2026-11-24 to 2026-12-01: {says}"
    assert texts(told)[:2] == ["GPU hours from 2026-11-24 to 2026-12-01", says]


def test_every_table_is_told_most_idle_first() -> None:
    namespaces = texts(message(REPORT))[2]
    assert namespaces.splitlines() == [
        "*Namespaces*",
        "```",
        "          idle h  returned h",
        "team-a       4.0         2.5",
        "team-b       0.0         0.0",
        "```",
    ]
    told = "".join(texts(message(REPORT)))
    assert "(no owner named)" in told
    assert "(model not known)" in told


def test_money_stands_beside_the_hours_that_have_a_price() -> None:
    total = structs.replace(row("", money="10.00"))
    priced = structs.replace(
        REPORT, currency="EUR", total=total, namespaces=(row("team-a", money="10.00"), row("x"))
    )
    told = texts(message(priced))
    assert "were idle (EUR 10.00); *2.5* were returned by pauses (EUR 10.00)" in told[1]
    assert told[2].splitlines()[2:5] == [
        "          idle h  returned h          idle EUR",
        "team-a       4.0         2.5             10.00",
        "x            4.0         2.5                 -",
    ]


def test_a_week_of_which_nothing_is_known_has_no_sums() -> None:
    empty = structs.replace(REPORT, history_begins=None, namespaces=(), owners=(), workloads=())
    assert "nothing can be said" in message(structs.replace(empty, models=()))["text"]


@pytest.mark.parametrize("top", [0, 1, 3, 1000])
def test_more_rows_than_fit_are_counted(top: int) -> None:
    many = tuple(row(f"deployment/team-a/{'x' * 30}-{n}") for n in range(500))
    told = texts(message(structs.replace(REPORT, workloads=many), top=top))[4]
    shown = told.count("deployment/team-a")
    assert told.endswith(f"and {500 - shown} more")
    assert 0 < shown <= 30
    assert shown == top or top in {0, 1000}


HOSTILE = "<!channel> <@U1> <https://evil|x> ``` *b* & \x1b[2J\u202e" + "&<>" * 2000


def test_a_hostile_name_pings_nobody_and_ends_no_table() -> None:
    strange = tuple(row(f"{HOSTILE[n:]}") for n in range(60))
    report = structs.replace(
        REPORT, namespaces=strange, owners=strange, workloads=strange, currency=HOSTILE[:12],
        models_without_price=tuple(one.name for one in strange),
    )  # fmt: skip
    for text in [*texts(message(report))[1:], message(report)["text"]]:
        assert not {"<", ">"} & set(text)
        assert text.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "").count("&") == 0
        assert text.count("```") in {0, 2}
        assert "\x1b" not in text
        assert "\u202e" not in text
