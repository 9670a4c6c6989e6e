"""Users' repositories."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from repositories import Repository, hover_project

from canard import Client

SLOW_STEP = "        height, speed = self.state\n"


@pytest.fixture
def client(platform) -> Iterator[Client]:
    with Client(api_url=platform.url) as client:
        yield client


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A project of the user's own with `Hover-v0`, not yet committed."""
    repository = Repository(tmp_path / "hover-env")
    repository.write(hover_project())
    return repository


@pytest.fixture
def slow_repository(repository: Repository) -> Repository:
    """Slow enough that a fault comes in the middle: some tenths of a second an iteration."""
    module = "hover_env/__init__.py"
    text = (repository.root / module).read_text()
    assert SLOW_STEP in text
    slowed = text.replace(SLOW_STEP, f"        __import__('time').sleep(0.0001)\n{SLOW_STEP}")
    repository.commit({module: slowed})
    return repository
