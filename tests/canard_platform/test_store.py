"""The data layer: one schema from migrations and tables, times with zones, transactions that exclude."""

import threading
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, select, text, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import IntegrityError, StatementError
from sqlalchemy.orm import Session
from sqlalchemy.schema import CreateIndex, CreateTable

from canard_platform.store.database import Database
from canard_platform.store.migrate import HEAD, alembic_config, current_revision, migrate
from canard_platform.store.tables import Base, Task, User
from canard_platform.store.users import ensure_user

NOW = datetime(2026, 12, 1, 4, tzinfo=UTC)


def add_user(session: Session, name: str, created_at: datetime = NOW) -> None:
    session.add(User(name=name, created_at=created_at))
    session.flush()


def test_the_migrations_end_where_the_code_says():
    assert ScriptDirectory.from_config(alembic_config()).get_heads() == [HEAD]


def test_the_migrations_make_what_the_tables_say(database: Database):
    """Indexes by their SQL: SQLite cannot reflect those on expressions."""
    with database.engine.connect() as connection:
        opts = {"compare_type": True, "include_object": lambda _o, _n, kind, *_rest: kind != "index"}
        context = MigrationContext.configure(connection, opts=opts)
        assert compare_metadata(context, Base.metadata) == []
        found = {
            row[0]: row[1]
            for row in connection.execute(text("SELECT name, sql FROM sqlite_master WHERE type = 'index'"))
        }
    for table in Base.metadata.sorted_tables:
        for index in table.indexes:
            assert squeezed(found[index.name]) == squeezed(str(CreateIndex(index).compile(database.engine)))


def squeezed(sql: str) -> str:
    return "".join(sql.replace('"', "").split()).lower()


def test_migrating_again_changes_nothing(database: Database):
    migrate(database.engine)

    with database.engine.connect() as connection:
        assert current_revision(connection) == HEAD


def test_a_database_of_a_newer_version_is_refused(database: Database):
    with database.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))

    with pytest.raises(RuntimeError, match="upgrade canard-hydra"):
        migrate(database.engine)


def test_the_schema_and_the_claim_can_be_said_to_postgresql():
    dialect = postgresql.dialect()

    for table in Base.metadata.sorted_tables:
        assert str(CreateTable(table).compile(dialect=dialect))
        assert all(str(CreateIndex(index).compile(dialect=dialect)) for index in table.indexes)
    claim = select(Task.id).where(Task.status == "queued").with_for_update(skip_locked=True)
    assert "FOR UPDATE SKIP LOCKED" in str(claim.compile(dialect=dialect))


def test_the_claim_uses_its_index(database: Database):
    with database.engine.connect() as connection:
        plan = connection.execute(
            text(
                "EXPLAIN QUERY PLAN SELECT id FROM tasks WHERE status = 'queued' AND source_id IS NULL"
                " AND queue = 'default' AND gpu_count <= 8 ORDER BY priority DESC, id LIMIT 1"
            )
        ).all()

    assert "ix_tasks_claim" in str(plan)


@pytest.mark.parametrize("offset_hours", [-11, 0, 5.5])
def test_times_come_back_as_the_same_instant_in_utc(database: Database, offset_hours: float):
    zone = timezone(timedelta(hours=offset_hours))
    with database.write() as session:
        add_user(session, "ada", NOW.astimezone(zone))

    with database.read() as session:
        found = session.scalar(select(User.created_at))

    assert found == NOW
    assert found.utcoffset() == timedelta(0)


def test_a_time_without_zone_is_refused(database: Database):
    with pytest.raises(StatementError, match="without zone"), database.write() as session:
        add_user(session, "ada", NOW.replace(tzinfo=None))


def test_foreign_keys_hold(database: Database):
    with pytest.raises(IntegrityError), database.write() as session:
        session.execute(
            text(
                "INSERT INTO api_keys (user_id, prefix, key_hash, scopes, created_at)"
                " VALUES (99, 'x', 'x', '[]', '2026-12-01')"
            )
        )


def test_a_failed_write_leaves_nothing(database: Database):
    def fail() -> None:
        with database.write() as session:
            add_user(session, "ada")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    with database.read() as session:
        assert session.scalars(select(User.name)).all() == []


def test_sqlite_keeps_its_promises_on_power_loss(tmp_path: Path):
    database = Database(f"sqlite:///{tmp_path / 'x.db'}")
    with database.engine.connect() as connection:
        found = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        ]
    database.close()

    assert found == ["wal", 2, 1]


@pytest.mark.timeout(120)
def test_writers_wait_for_each_other_and_readers_do_not_wait(tmp_path: Path):
    """Read, then write what was read plus one: without BEGIN IMMEDIATE some would be lost, or locked out."""
    database = Database(f"sqlite:///{tmp_path / 'x.db'}")
    migrate(database.engine)
    with database.write() as session:
        ensure_user(session, "0", NOW)

    def count() -> None:
        for _ in range(20):
            with database.write() as session:
                name = int(session.scalars(select(User.name)).one())
                session.execute(update(User).values(name=str(name + 1)))

    writers = [threading.Thread(target=count) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(100)
    with database.write() as writing:
        writing.execute(update(User).values(name="later"))
        with database.read() as reading:
            seen = reading.scalars(select(User.name)).one()
    database.close()

    assert seen == "80"


def test_every_table_has_a_key(database: Database):
    inspector = inspect(database.engine)

    assert all(
        inspector.get_pk_constraint(table)["constrained_columns"] for table in inspector.get_table_names()
    )
