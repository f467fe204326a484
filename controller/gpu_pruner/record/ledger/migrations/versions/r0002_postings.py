"""Which weekly reports were posted."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0002"
down_revision = "r0001"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "postings",
        sa.Column("due_at", sa.Double, primary_key=True),
        sa.Column("claimed_at", sa.Double, nullable=False),
        sa.Column("posted_at", sa.Double, nullable=True),
    )
