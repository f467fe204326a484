"""The savings report as a message for an incoming webhook of Slack.

Within Slack's limits whatever the names are: 50 blocks, 3,000 characters of a text, 150 of a title.
Names come from strangers: none can become a link, a mention, or the end of the table. What cannot
show blocks shows the text. Pure.

Source: https://docs.slack.dev/reference/block-kit/blocks and
https://docs.slack.dev/messaging/formatting-message-text.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from gpu_pruner.record.savings import Cost, Savings, SavingsRow
from gpu_pruner.record.savings_pages import name_in, printable, remarks, sections

LONGEST_TEXT = 3000
"""Characters of the text of a section, or of one remark."""
LONGEST_TITLE = 150
_ROOM = LONGEST_TEXT - 200
"""Of a table: what is left is for the title above and the line below it."""
_LONGEST_NAME = 48
"""Characters of a name in a table: a phone breaks longer lines."""
_MOST_ROWS = 30

Json: TypeAlias = dict[str, object]


def slack_message(report: Savings, *, top: int) -> bytes:
    """Return the report as JSON for the webhook.

    Args:
        report: what to write.
        top: rows of each table, 30 at most; 0 for as many.
    """
    title = f"GPU hours from {report.begin[:10]} to {report.end[:10]}"
    most = min(top or _MOST_ROWS, _MOST_ROWS)
    blocks: list[Json] = [
        {"type": "header", "text": {"type": "plain_text", "text": title[:LONGEST_TITLE]}},
        _section(_sums(report)),
    ]
    blocks += [
        _section(f"*{name}*\n{_table(name, rows, report, most)}")
        for name, rows in sections(report)
        if rows
    ]
    told = _cut(_escaped(" ".join(remarks(report))))
    blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": told}]})
    text = _cut(f"{title}: {_sums(report)}")
    return msgspec.json.encode({"text": text, "blocks": blocks, "unfurl_links": False})


def _section(text: str) -> Json:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def _sums(report: Savings) -> str:
    """Return the one sentence that everybody reads."""
    total = report.total
    if report.history_begins is None:
        return "no cycle is known of this time, so nothing can be said."
    idle = f"*{total.idle_gpu_hours:.1f}* of {total.held_gpu_hours:.1f} held GPU hours were idle"
    back = f"*{total.returned_gpu_hours:.1f}* were returned by pauses"
    idle += _money(total.idle_cost, report.currency)
    return f"{idle}; {back}{_money(total.returned_cost, report.currency)}."


def _money(cost: Cost | None, currency: str | None) -> str:
    if cost is None or cost.amount is None or currency is None:
        return ""
    return f" ({_escaped(currency)} {cost.amount})"


def _table(title: str, rows: tuple[SavingsRow, ...], report: Savings, most: int) -> str:
    """Return as many rows as fit, as text of one width, and how many are left."""
    named = [(_name(name_in(title, row)), row) for row in rows[:most]]
    width = max(len(name) for name, _ in named)
    money = report.currency is not None
    head = f"{'':{width}}{'idle h':>10}{'returned h':>12}"
    lines = [head + (f"{'idle ' + printable(report.currency or ''):>18}" if money else "")]
    size = len(_escaped(lines[0]))
    for name, row in named:
        line = f"{name:{width}}{row.idle_gpu_hours:>10.1f}{row.returned_gpu_hours:>12.1f}"
        line += f"{_amount(row.idle_cost):>18}" if money else ""
        size += len(_escaped(line)) + 1
        if size > _ROOM:
            break
        lines.append(line)
    left = len(rows) - (len(lines) - 1)
    fence = "```"
    more = f"\nand {left} more" if left else ""
    return f"{fence}\n{_escaped(chr(10).join(lines))}\n{fence}{more}"


def _amount(cost: Cost | None) -> str:
    """Return the money of a cell; a dash where nothing of it has a price."""
    return "-" if cost is None or cost.amount is None else cost.amount


def _name(text: str) -> str:
    """Return a name as it fits into a line."""
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"


def _escaped(text: str) -> str:
    """Return a text in which nothing is a link, a mention, or the end of a table, to Slack."""
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return plain.replace("`", "'")


def _cut(text: str) -> str:
    """Return a text that fits, never with half of an escape at its end."""
    if len(text) <= LONGEST_TEXT:
        return text
    short = text[: LONGEST_TEXT - 1]
    head, mark, tail = short.rpartition("&")
    return (head if mark and ";" not in tail else short) + "…"
