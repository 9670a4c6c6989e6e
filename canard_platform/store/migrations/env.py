"""Alembic's entry: runs on the connection it is given, within that connection's transaction."""

from alembic import context

from canard_platform.store.tables import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,
    compare_type=True,
)
context.run_migrations()
