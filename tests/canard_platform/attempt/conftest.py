"""A service, a trainer that stands in for the real one, and runners that end with the test."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attempts import RunnerProcess, start_runner
from relay import Relay
from repositories import Repository
from stage import Stage
from standin_trainer import standin_python


@pytest.fixture
def fast_stage(open_stage: Callable[..., Stage]) -> Stage:
    """Asks for a heartbeat every tenth of a second."""
    return open_stage(settings={"heartbeat_s": 0.1, "lease_s": 60.0})


@pytest.fixture
def start() -> Iterator[Callable[..., RunnerProcess]]:
    """`attempts.start_runner`; what it started is gone after the test."""
    started: list[RunnerProcess] = []

    def start_one(stage: Stage, **options: Any) -> RunnerProcess:
        started.append(start_runner(stage, **options))
        return started[-1]

    yield start_one
    for runner in started:
        runner.kill()


@pytest.fixture
def standin(tmp_path: Path) -> str:
    """Interpreter whose `-m trainer` is tests/support/standin_trainer.py."""
    return standin_python(tmp_path / "standin-python")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "robot")


@pytest.fixture
def relay_to() -> Iterator[Callable[[Stage], Relay]]:
    """A network between runners and a service."""
    relays: list[Relay] = []

    def open_one(stage: Stage) -> Relay:
        relays.append(Relay(stage.socket.getsockname()[1]))
        return relays[-1]

    yield open_one
    for relay in relays:
        relay.close()


@pytest.fixture
def relay(fast_stage: Stage, relay_to: Callable[[Stage], Relay]) -> Relay:
    return relay_to(fast_stage)
