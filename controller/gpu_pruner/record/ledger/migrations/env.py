"""What alembic runs to apply the steps, on the connection that it is handed."""

from __future__ import annotations

from alembic import context

from gpu_pruner.record.ledger.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    transactional_ddl=False,  # whoever hands the connection over holds the transaction
)
context.run_migrations()
