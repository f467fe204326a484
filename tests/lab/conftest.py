"""The lab, only where somebody asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.lab import Lab

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the lab out unless it is named by its path, or by ``-m lab``."""
    asked = "lab" in config.option.markexpr or any(
        one.is_relative_to(HERE) for one in _named(config)
    )
    return None if asked or collection_path.suffix != ".py" else True


def _named(config: pytest.Config) -> list[Path]:
    return [(config.invocation_params.dir / one.split("::")[0]).resolve() for one in config.args]


@pytest.fixture
def team(lab: Lab) -> str:
    """Return the name of a new namespace."""
    return lab.namespace()
