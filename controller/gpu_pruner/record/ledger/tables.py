"""The tables, as queries name them. What makes them are the migrations; a test holds them equal.

Times are Unix seconds, UTC, as everywhere in this program. JSON is text: it is evidence to be read,
and no database has to look into it.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Index, Integer, MetaData, String, Table, Text

METADATA = MetaData()


def _who() -> list[Column[str]]:
    names = ("kind", "namespace", "name", "api_group", "root_uid", "owner")
    return [Column(one, String(255), nullable=False) for one in names]


CYCLES = Table(
    "cycles",
    METADATA,
    Column("cycle_id", String(100), primary_key=True),
    Column("started_at", Double, nullable=False),
    Column("finished_at", Double, nullable=False),
    Column("workloads", Integer, nullable=False),
    Column("failure", Text, nullable=False),
    Column("breakers", Text, nullable=False),
    Index("cycles_started_at", "started_at"),
)
"""One row per cycle of a leader. That a cycle is here says that all of it is stored."""

DECISIONS = Table(
    "decisions",
    METADATA,
    Column("cycle_id", String(100), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("at", Double, nullable=False),
    *_who(),
    Column("decision_id", String(255), nullable=False),
    Column("phase", String(40), nullable=False),
    Column("verdict", String(40), nullable=False),
    Column("reason", String(100), nullable=False),
    Column("was", String(200), nullable=False),
    Column("action", String(40), nullable=False),
    Column("message", Text, nullable=False),
    Column("gpus", Integer, nullable=False),
    Column("evidence", Text, nullable=False),
    Column("former", Text, nullable=False),
    Index("decisions_root_uid_at", "root_uid", "at"),
    Index("decisions_at", "at"),
)
"""One row whenever a workload's standing changed, or something was done about it."""

ACTIONS = Table(
    "actions",
    METADATA,
    Column("cycle_id", String(100), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("at", Double, nullable=False),
    *_who(),
    Column("decision_id", String(255), nullable=False),
    Column("action", String(40), nullable=False),
    Column("result", String(40), nullable=False),
    Column("detail", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("gpus", Integer, nullable=False),
    Column("evidence", Text, nullable=False),
    Column("former", Text, nullable=False),
    Index("actions_at", "at"),
)
"""One row per pause or restore that was ordered, with how it ended."""

GPU_TIME_KEY = (
    "hour",
    "namespace",
    "kind",
    "name",
    "api_group",
    "root_uid",
    "owner",
    "model",
    "state",
)
"""What GPU seconds are summed by."""

GPU_TIME = Table(
    "gpu_time",
    METADATA,
    Column("hour", BigInteger, primary_key=True),
    *(Column(one, String(255), primary_key=True) for one in GPU_TIME_KEY[1:]),
    Column("seconds", Double, nullable=False),
    Index("gpu_time_root_uid_hour", "root_uid", "hour"),
)
"""GPU seconds by hour, workload, owner, model and state."""

POSTINGS = Table(
    "postings",
    METADATA,
    Column("due_at", Double, primary_key=True),
    Column("claimed_at", Double, nullable=False),
    Column("posted_at", Double, nullable=True),
)
"""One row per weekly report that was due: who began on it when, and when it was posted."""

FALSE_POSITIVES = Table(
    "false_positives",
    METADATA,
    Column("root_uid", String(255), primary_key=True),
    Column("decision_id", String(255), primary_key=True),
    Column("at", Double, nullable=False),
    Column("paused_at", Double, nullable=True),
    *(one for one in _who() if one.name != "root_uid"),
    Column("by", String(255), nullable=False),
    Column("reason", Text, nullable=False),
    Column("evidence", Text, nullable=False),
    Index("false_positives_at", "at"),
)
"""One row per pause that somebody called wrong, with the sentence that the pause rested on."""

MOMENTS = (
    (CYCLES, "started_at"),
    (DECISIONS, "at"),
    (ACTIONS, "at"),
    (GPU_TIME, "hour"),
    (POSTINGS, "due_at"),
    (FALSE_POSITIVES, "at"),
)
"""Each table, and the column by which its rows grow old."""
