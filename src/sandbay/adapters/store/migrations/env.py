"""Alembic runs this for every command; the connection, and its transaction, are the caller's."""

from alembic import context

from sandbay.adapters.store.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
