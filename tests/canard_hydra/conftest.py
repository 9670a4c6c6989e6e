"""The command line as a person uses it, in an empty directory, and a service that keeps what it was sent."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from forked import ForkedCommands
from recording import Service

LIMIT_S = 60

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Nothing of the person who runs the tests: no key, platform, proxy or state."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CANARD_", "HYDRA_")) and not name.lower().endswith("_proxy")
    }
    return kept | {"CANARD_HOME": str(tmp_path / "canard-home"), "COLUMNS": "200"}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Where the command is given: empty."""
    directory = tmp_path / "cwd"
    directory.mkdir()
    return directory


@pytest.fixture
def canard_hydra(environment: dict[str, str], directory: Path) -> Command:
    """`python -m canard_hydra ...`"""

    def run(
        *arguments: str, limit_s: float = LIMIT_S, **extra_environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "canard_hydra", *arguments],
            cwd=directory,
            env=environment | extra_environment,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def _forked() -> Iterator[ForkedCommands]:
    commands = ForkedCommands(os.environ)
    yield commands
    commands.close()


@pytest.fixture
def quick(_forked: ForkedCommands, environment: dict[str, str], directory: Path) -> Command:
    """The same command, for many of them: forked from a process that has loaded everything."""

    def run(*arguments: str, **extra_environment: str) -> subprocess.CompletedProcess[str]:
        return _forked.run(arguments, directory=directory, environment=environment | extra_environment)

    return run


@pytest.fixture
def service(environment: dict[str, str]) -> Iterator[Service]:
    """A platform that accepts everything; CANARD_API_URL and the key lead to it."""
    service = Service()
    environment |= {"CANARD_API_URL": service.url, "CANARD_API_KEY": "k" * 40}
    yield service
    service.close()
