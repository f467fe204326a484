"""What every test of the lab may ask for."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.lab import Lab

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a file together where there are several processes.

    Many share a world that takes long to make, and each process has a lab of its own.
    """
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.xdist_group(f"lab-{item.path.stem}"))


@pytest.fixture
def team(lab: Lab) -> str:
    """Return the name of a new namespace."""
    return lab.namespace()
