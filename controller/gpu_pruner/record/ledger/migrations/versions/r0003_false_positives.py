"""Pauses that somebody called wrong."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0003"
down_revision = "r0002"


def upgrade() -> None:
    """Make their table."""
    names = ("kind", "namespace", "name", "api_group", "owner")
    op.create_table(
        "false_positives",
        sa.Column("root_uid", sa.String(255), primary_key=True),
        sa.Column("decision_id", sa.String(255), primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("paused_at", sa.Double, nullable=True),
        *(sa.Column(one, sa.String(255), nullable=False) for one in names),
        sa.Column("by", sa.String(255), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("evidence", sa.Text, nullable=False),
    )
    op.create_index("false_positives_at", "false_positives", ["at"])
