"""Content identity of tasks, and tasks that take the result of another

Tasks of before have no identity: it is not known which version trained them, so their results are not reused.
"""

import sqlalchemy as sa
from alembic import op

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

FOLLOWER = "status = 'queued' AND source_id IS NOT NULL"
CLAIMABLE = "status = 'queued' AND source_id IS NULL"
ORIGINAL = "source_id IS NULL"

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _add_reference("tasks", "user_id", "users")
    _add_reference("tasks", "source_id", "tasks")
    op.add_column("tasks", sa.Column("identity", sa.String(), nullable=True))
    op.add_column("runs", sa.Column("fingerprint", sa.String(), nullable=True))
    op.add_column("runs", sa.Column("reuse_note", sa.Text(), nullable=True))
    op.execute("UPDATE tasks SET user_id = (SELECT user_id FROM runs WHERE runs.id = tasks.run_id)")

    op.drop_index("ix_tasks_claim", "tasks")
    _index("ix_tasks_claim", ["queue", "gpu_count", sa.text("priority DESC"), "id"], where=CLAIMABLE)
    _index("ix_tasks_followers", ["source_id"], where=FOLLOWER)
    _index("ix_tasks_user_id_identity", ["user_id", "identity"], where=ORIGINAL)
    op.create_index("ix_runs_user_id_fingerprint", "runs", ["user_id", "fingerprint"])


def _add_reference(table: str, column: str, target: str) -> None:
    """Within ADD COLUMN: SQLite can add a constraint in no other way without writing the table anew, which
    would break the references to it."""
    kind = BIG_ID.compile(dialect=op.get_bind().dialect)
    op.execute(
        f"ALTER TABLE {table} ADD COLUMN {column} {kind}"
        f" CONSTRAINT fk_{table}_{column} REFERENCES {target} (id)"
    )


def _index(name: str, columns: list[str | sa.TextClause], *, where: str) -> None:
    op.create_index(name, "tasks", columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))
