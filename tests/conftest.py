"""What holds for every test: Hypothesis profiles, one lab, and that nothing is skipped in CI."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from support.lab import Lab

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

# Deadlines and the too-slow check measure the machine, not the promise.
settings.register_profile(
    "normal",
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("long", settings.get_profile("normal"), max_examples=20_000)
settings.load_profile("normal")  # --hypothesis-profile=long wins: pytest reads it after this file


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background by a shell. Programs that a test interrupts would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give properties all the time that the long counts take: one of them may need half an hour."""
    if config.getoption("--hypothesis-profile", default=None) != "long":
        return
    for item in items:
        if "properties" in item.path.parts:
            item.add_marker(pytest.mark.timeout(0))


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Start a real control plane: one for each test process, as its resets disturb all others."""
    from support.lab import Lab, require_lab  # noqa: PLC0415 - most tests can do without

    with Lab(tmp_path_factory.mktemp("lab"), require_lab()) as running:
        yield running


def _refuse_skip(report: Report) -> Report:
    """Turn a skip into a failure where CI=true: there every component must be present.

    Elsewhere all skips for one reason get one place, so that the summary says it in one line.
    """
    if not report.skipped or hasattr(report, "wasxfail"):
        return report
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: nothing may be skipped where CI=true. {reason}"
    elif isinstance(report.longrepr, tuple):
        report.longrepr = (__file__, None, reason)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _refuse_skip((yield))
