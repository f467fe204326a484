"""A backtest as a picture: GPU hours returned against pauses regretted, a dot for each setting.

The recommended one is marked. matplotlib draws it, an extra; `plotting.drawable` says whether it
can. It judges nothing.
"""

from __future__ import annotations

from pathlib import Path

from gpu_pruner.record.backtest import Backtest, SettingOutcome

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
        axes = figure.add_subplot()
        for (regrets, hours), several in _places(found).items():
            best = any(one.recommended for one in several)
            axes.plot(
                [regrets], [hours], marker="o", linestyle="",
                markersize=11 if best else 6, color=_MARK if best else _QUIET,
            )  # fmt: skip
            told = [f"{one.name}{', recommended' if one.recommended else ''}" for one in several]
            axes.annotate(
                "\n".join(told), (regrets, hours), xytext=(8, 0), textcoords="offset points",
                fontsize=8, va="center", color=_MARK if best else "black",
            )  # fmt: skip
        axes.set_xlabel("pauses regretted: work within an hour after the pause")
        axes.set_ylabel("GPU hours returned")
        axes.set_title(
            f"{found.begin} to {found.end}, each dot: window, threshold, notice",
            loc="left", fontsize=9,
        )  # fmt: skip
        axes.margins(x=0.25, y=0.15)
        axes.set_xlim(left=min(-0.5, axes.get_xlim()[0]))
        axes.grid(color="#e3e3e3", linewidth=0.8)
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        figure.savefig(path, format=kind, metadata=metadata)


def _places(found: Backtest) -> dict[tuple[int, float], list[SettingOutcome]]:
    """Return the settings by where they lie: several may have done the same."""
    places: dict[tuple[int, float], list[SettingOutcome]] = {}
    for one in found.settings:
        places.setdefault((one.regrets, one.gpu_hours_returned), []).append(one)
    return places
