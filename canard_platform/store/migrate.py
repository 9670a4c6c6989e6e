"""Brings a database to the newest schema; Alembic is loaded only when there is something to do."""

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0002"
"""Newest revision; a test holds it equal to what the scripts say."""

SCRIPTS = Path(__file__).parent / "migrations"


def migrate(engine: Engine) -> None:
    """Upgrade to HEAD, in one transaction.

    Raises:
        RuntimeError: the database was written by a newer version.
    """
    with engine.execution_options(canard_write=True).begin() as connection:
        if current_revision(connection) != HEAD:
            _upgrade(connection)


def current_revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return revision


def _upgrade(connection: Connection) -> None:
    from alembic import command
    from alembic.util import CommandError

    config = alembic_config()
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise RuntimeError(
            f"the database is at revision {current_revision(connection)!r}, which this version does not know"
            f" ({error}); upgrade canard-hydra"
        ) from error


def alembic_config() -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    return config
