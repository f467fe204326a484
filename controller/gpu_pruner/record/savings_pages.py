"""The savings report as Markdown and as one HTML page, for mail, tickets and wikis.

Names come from strangers: nothing of them may become markup, or move a terminal's cursor. The page
loads nothing and runs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from gpu_pruner.record.savings import Cost, Savings, SavingsRow

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$^=:@-])")
_NOBODY = {"Owners": "(no owner named)", "Models": "(model not known)"}

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100%; margin-bottom: 2rem }
th, td { padding: .3rem .6rem; border-bottom: 1px solid #8884; text-align: right }
th:first-child, td:first-child { text-align: left; overflow-wrap: anywhere }
:root { color-scheme: light dark }
"""


def printable(text: str) -> str:
    """Return a text without what a terminal or a browser would obey instead of showing."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)


def headings(report: Savings) -> tuple[str, ...]:
    """Return the column titles behind the name."""
    counts = ("held GPU-h", "idle GPU-h", "unknown GPU-h", "returned GPU-h", "false positives")
    if report.currency is None:
        return counts
    currency = printable(report.currency)
    return (*counts, f"idle {currency}", f"returned {currency}")


def cells(row: SavingsRow) -> tuple[str, ...]:
    """Return what stands under the titles."""
    hours = (row.held_gpu_hours, row.idle_gpu_hours, row.unknown_gpu_hours, row.returned_gpu_hours)
    wrong = "" if row.false_positives is None else str(row.false_positives)
    shown = (*(f"{one:.1f}" for one in hours), wrong)
    if row.idle_cost is None or row.returned_cost is None:
        return shown
    return (*shown, _cost(row.idle_cost), _cost(row.returned_cost))


def _cost(cost: Cost) -> str:
    if not cost.gpu_hours_without_price:
        return cost.amount or "0.00"
    bare = f"{cost.gpu_hours_without_price:.1f} h without price"
    return bare if cost.amount is None else f"{cost.amount} + {bare}"


def sections(report: Savings) -> tuple[tuple[str, tuple[SavingsRow, ...]], ...]:
    """Return the tables with their titles."""
    return (
        ("Namespaces", report.namespaces),
        ("Owners", report.owners),
        ("Workloads", report.workloads),
        ("Models", report.models),
    )


def name_in(section: str, row: SavingsRow) -> str:
    """Return a row's name as text for people."""
    return printable(row.name) or _NOBODY.get(section, "(none)")


def remarks(report: Savings) -> Iterator[str]:
    """Yield what has to be known to read the numbers, as sentences of plain text."""
    yield f"From {report.begin} to {report.end}, in whole hours at the begin."
    if report.history_begins is None:
        yield "No cycle is known of this time: the sums say nothing."
    else:
        yield f"The first cycle that is known began at {report.history_begins}."
    yield (
        "Returned are the GPUs that paused workloads held before, for as long as the pause lasted; "
        "time in which no cycle ran is left out. False positives are pauses that somebody called "
        "wrong."
    )
    if report.models_without_price:
        names = ", ".join(
            printable(one) or _NOBODY["Models"] for one in report.models_without_price
        )
        yield f"Without a price: {names}."


def more(rows: tuple[SavingsRow, ...], top: int) -> str:
    """Return what to say of the rows that are not shown; empty where all are."""
    left = len(rows) - top if top else 0
    return f"and {left} more; --top 0 shows all" if left > 0 else ""


def shown(rows: tuple[SavingsRow, ...], top: int) -> tuple[SavingsRow, ...]:
    """Return the rows to show: the first ones, or with 0 all."""
    return rows[:top] if top else rows


def markdown(report: Savings, *, top: int) -> str:
    """Return the report as Markdown.

    Args:
        report: what to write.
        top: rows of each table; 0 for all.
    """
    head = headings(report)
    lines = ["# GPU hours, idle and returned", ""]
    lines += [_plain(one) + "  " for one in remarks(report)]
    lines += ["", *_markdown_table([("Everything", cells(report.total))], "", head)]
    for title, rows in sections(report):
        named = [(_plain(name_in(title, row)), cells(row)) for row in shown(rows, top)]
        lines += ["", f"## {title}", "", *_markdown_table(named, title, head)]
        if left := more(rows, top):
            lines += ["", _plain(left)]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", text)


def _markdown_table(
    rows: list[tuple[str, tuple[str, ...]]], title: str, head: tuple[str, ...]
) -> Iterator[str]:
    yield "| " + " | ".join((title.removesuffix("s"), *map(_plain, head))) + " |"
    yield "| --- |" + " ---: |" * len(head)
    for name, values in rows:
        yield "| " + " | ".join((name, *map(_plain, values))) + " |"


def html(report: Savings, *, top: int) -> str:
    """Return the report as a page.

    Args:
        report: what to write.
        top: rows of each table; 0 for all.
    """
    head = headings(report)
    body = ["<h1>GPU hours, idle and returned</h1>"]
    body += [f"<p>{escape(one)}</p>" for one in remarks(report)]
    body.append(_html_table([("Everything", cells(report.total))], "", head))
    for title, rows in sections(report):
        named = [(name_in(title, row), cells(row)) for row in shown(rows, top)]
        body += [f"<h2>{title}</h2>", _html_table(named, title.removesuffix("s"), head)]
        if left := more(rows, top):
            body.append(f"<p>{escape(left)}</p>")
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>GPU hours, idle and returned</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _html_table(rows: list[tuple[str, tuple[str, ...]]], title: str, head: tuple[str, ...]) -> str:
    titles = "".join(f'<th scope="col">{escape(one)}</th>' for one in (title, *head))
    lines = (
        "<tr>" + "".join(f"<td>{escape(one)}</td>" for one in (name, *values)) + "</tr>"
        for name, values in rows
    )
    return (
        f"<table><thead><tr>{titles}</tr></thead>\n<tbody>\n"
        + "\n".join(lines)
        + "</tbody></table>"
    )
