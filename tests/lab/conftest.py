"""What every test of the lab may ask for."""

from __future__ import annotations

import pytest
from support.lab import Lab


@pytest.fixture
def team(lab: Lab) -> str:
    """Return the name of a new namespace."""
    return lab.namespace()
