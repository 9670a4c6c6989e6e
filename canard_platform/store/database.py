"""One data layer for SQLite and PostgreSQL: a read or a write transaction as a context.

On SQLite a write starts with BEGIN IMMEDIATE, so that what it reads cannot change before it writes and two
writers wait for each other instead of failing half-way.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.orm import Session
from sqlalchemy.pool import StaticPool

BUSY_TIMEOUT_S = 30


class Database:
    """Opened by URL; `read()` and `write()` are the only ways in."""

    def __init__(self, url: str) -> None:
        self.engine = _sqlite(url) if url.startswith("sqlite") else create_engine(url)
        self._writing = self.engine.execution_options(canard_write=True)

    @contextmanager
    def read(self) -> Iterator[Session]:
        """One consistent view; nothing is kept."""
        with Session(self.engine) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """All or nothing, on disk when the context ends."""
        with Session(self._writing, expire_on_commit=False) as session, session.begin():
            yield session

    def close(self) -> None:
        self.engine.dispose()


def _sqlite(url: str) -> Engine:
    in_memory = url in {"sqlite://", "sqlite:///:memory:"}
    pool: dict[str, Any] = {"poolclass": StaticPool} if in_memory else {}
    engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_S, "check_same_thread": False}, **pool)
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "begin", _begin)
    return engine


def _set_up(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # the driver begins nothing by itself; _begin does
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("canard_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
