"""A backtest as a picture: GPU hours returned against pauses regretted, a dot for each setting.

The recommended one is marked. matplotlib draws it, an extra; `plotting.drawable` says whether it
can. It judges nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpu_pruner.record.backtest import Backtest, SettingOutcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_QUIET, _MARK = "#1f5a96", "#d1580a"
_SIZE = (8.0, 5.0)
"""Inches, at 100 pixels each."""


def save(found: Backtest, path: Path) -> None:
    """Draw a backtest.

    Args:
        found: with at least one setting.
        path: ends in one of `plotting.FORMATS`.
    """
    import matplotlib as mpl  # noqa: PLC0415 - slow to import, and not always there
    from matplotlib.figure import Figure  # noqa: PLC0415 - as above

    kind = path.suffix.lower()[1:]
    svg: dict[str, str | None] = {"Creator": "gpu-pruner", "Date": None}
    metadata = svg if kind == "svg" else {"Software": "gpu-pruner"}
    # Words stay words in an SVG, and the same backtest gives the same bytes.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "gpu-pruner"}):
        figure = Figure(figsize=_SIZE, dpi=100, facecolor="white", layout="constrained")
        _draw(figure.add_subplot(), found)
        figure.savefig(path, format=kind, metadata=metadata)


def _draw(axes: Axes, found: Backtest) -> None:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - as in `save`

    regrets = [one.regrets for one in found.settings]
    width = max(1, max(regrets) - min(regrets))
    for several in _groups(found):
        for one in several:
            axes.plot(
                [one.regrets], [one.gpu_hours_returned], marker="o", linestyle="",
                markersize=11 if one.recommended else 6,
                color=_MARK if one.recommended else _QUIET, zorder=2 if one.recommended else 3,
            )  # fmt: skip
        best = any(one.recommended for one in several)
        told = [f"{one.name}{', recommended' if one.recommended else ''}" for one in several]
        place = (max(one.regrets for one in several), several[0].gpu_hours_returned)
        axes.annotate(
            "\n".join(told), place, xytext=(9, 0), textcoords="offset points",
            fontsize=8, va="center", color=_MARK if best else "black",
        )  # fmt: skip
    axes.set_xlim(min(regrets) - 0.1 * width, max(regrets) + 0.5 * width)
    axes.margins(y=0.15)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("pauses regretted: work within an hour after the pause")
    axes.set_ylabel("GPU hours returned")
    axes.set_title(
        f"{found.begin} to {found.end}, each dot: window, threshold, notice",
        loc="left", fontsize=9,
    )  # fmt: skip
    axes.grid(color="#e3e3e3", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


_NEAR = 0.04
"""Share of an axis within which settings share one label: their dots lie upon one another."""


def _groups(found: Backtest) -> list[list[SettingOutcome]]:
    """Return the settings, those together that have no room for a label each."""
    regrets = [one.regrets for one in found.settings]
    hours = [one.gpu_hours_returned for one in found.settings]
    wide = _NEAR * (max(regrets) - min(regrets))
    high = _NEAR * (max(hours) - min(hours))
    groups: list[list[SettingOutcome]] = []
    for one in sorted(found.settings, key=lambda one: -one.gpu_hours_returned):
        for group in groups:
            first = group[0]
            near = abs(first.regrets - one.regrets) <= wide
            if near and abs(first.gpu_hours_returned - one.gpu_hours_returned) <= high:
                group.append(one)
                break
        else:
            groups.append([one])
    return groups
