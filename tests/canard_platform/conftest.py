"""The platform's parts, put together for one test."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event
from stage import ManualClock, Stage

from canard_platform.store.database import Database
from canard_platform.store.migrate import migrate


@pytest.fixture(scope="session")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty database of the newest schema."""
    file = tmp_path_factory.mktemp("schema") / "empty.db"
    database = Database(f"sqlite:///{file}")
    migrate(database.engine)
    database.close()
    return file


@pytest.fixture
def open_stage(tmp_path: Path, schema: Path) -> Iterator[Callable[..., Stage]]:
    """Opens platforms under one folder; they end with the test."""
    stages: list[Stage] = []

    def open_one(**options: object) -> Stage:
        stages.append(Stage(tmp_path, schema, **options))
        return stages[-1]

    yield open_one
    for stage in stages:
        stage.close()


@pytest.fixture
def stage(open_stage: Callable[..., Stage]) -> Stage:
    return open_stage()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def database() -> Iterator[Database]:
    database = Database("sqlite://")
    migrate(database.engine)
    yield database
    database.close()


@pytest.fixture
def counted() -> Callable[[Database], AbstractContextManager[list[str]]]:
    """Collects the statements that a database is asked while the context lasts."""

    @contextmanager
    def collect(database: Database) -> Iterator[list[str]]:
        statements: list[str] = []

        def note(_connection, _cursor, statement, *_rest) -> None:
            statements.append(statement)

        event.listen(database.engine, "before_cursor_execute", note)
        try:
            yield statements
        finally:
            event.remove(database.engine, "before_cursor_execute", note)

    return collect
