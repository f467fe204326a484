"""The first tables: cycles, decisions, actions and GPU time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0001"
down_revision = None


def upgrade() -> None:
    """Make them. Written out, for what `tables` becomes later is not what this step made."""
    op.create_table(
        "cycles",
        sa.Column("cycle_id", sa.String(100), primary_key=True),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("finished_at", sa.Double, nullable=False),
        sa.Column("workloads", sa.Integer, nullable=False),
        sa.Column("failure", sa.Text, nullable=False),
        sa.Column("breakers", sa.Text, nullable=False),
    )
    op.create_index("cycles_started_at", "cycles", ["started_at"])
    _create_decisions()
    _create_actions()
    _create_gpu_time()


def _who() -> list[sa.Column[str]]:
    names = ("kind", "namespace", "name", "api_group", "root_uid", "owner")
    return [sa.Column(one, sa.String(255), nullable=False) for one in names]


def _create_decisions() -> None:
    op.create_table(
        "decisions",
        sa.Column("cycle_id", sa.String(100), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
        *_who(),
        sa.Column("decision_id", sa.String(255), nullable=False),
        sa.Column("phase", sa.String(40), nullable=False),
        sa.Column("verdict", sa.String(40), nullable=False),
        sa.Column("reason", sa.String(100), nullable=False),
        sa.Column("was", sa.String(200), nullable=False),
        sa.Column("action", sa.String(40), nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("gpus", sa.Integer, nullable=False),
        sa.Column("evidence", sa.Text, nullable=False),
        sa.Column("former", sa.Text, nullable=False),
    )
    op.create_index("decisions_root_uid_at", "decisions", ["root_uid", "at"])
    op.create_index("decisions_at", "decisions", ["at"])


def _create_actions() -> None:
    op.create_table(
        "actions",
        sa.Column("cycle_id", sa.String(100), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
        *_who(),
        sa.Column("decision_id", sa.String(255), nullable=False),
        sa.Column("action", sa.String(40), nullable=False),
        sa.Column("result", sa.String(40), nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("gpus", sa.Integer, nullable=False),
        sa.Column("evidence", sa.Text, nullable=False),
        sa.Column("former", sa.Text, nullable=False),
    )
    op.create_index("actions_at", "actions", ["at"])


def _create_gpu_time() -> None:
    names = ("namespace", "kind", "name", "api_group", "root_uid", "owner", "model", "state")
    op.create_table(
        "gpu_time",
        sa.Column("hour", sa.BigInteger, primary_key=True, autoincrement=False),
        *(sa.Column(one, sa.String(255), primary_key=True) for one in names),
        sa.Column("seconds", sa.Double, nullable=False),
    )
    op.create_index("gpu_time_root_uid_hour", "gpu_time", ["root_uid", "hour"])
