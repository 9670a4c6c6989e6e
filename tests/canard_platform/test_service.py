"""The service as a whole: in order up, in order down."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select
from stage import Stage

from canard_platform.clock import SystemClock
from canard_platform.dispatcher import Launch
from canard_platform.service import Service
from canard_platform.store.tables import Attempt, Task

LAUNCH = Launch(trainer_python="python", git_cache="/nowhere")


@pytest.fixture
def stage(open_stage) -> Stage:
    return open_stage(clock=SystemClock(), serves=False, settings={"stop_grace_s": 30, "retry_delay_s": 0})


@pytest.fixture
def service(stage: Stage):
    service = Service(stage.services, LAUNCH, stage.socket)
    service.start()
    yield service
    service.stop()


def eventually(condition: Callable[[], Any], within_s: float = 60) -> Any:
    deadline = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
    return found


def submit(stage: Stage, task_name: str) -> str:
    slug: str = stage.submit(training_config={"task_name": task_name, "max_iterations": 1})["slug"]
    return slug


def test_it_answers_as_soon_as_it_has_started_and_trains_what_is_submitted(stage: Stage, service: Service):
    slug = submit(stage, "Complete-v0")

    run = eventually(lambda: (found := stage.run(slug))["status"] == "completed" and found)

    assert run["completed_tasks"] == 1


def test_stopping_waits_for_attempts_to_hand_back_over_the_api(stage: Stage, service: Service):
    slug = submit(stage, "HandsBack-v0")
    eventually(lambda: list((stage.home / "attempts").glob("*/pids.json")))

    service.stop()

    with stage.services.database.read() as session:
        attempt = session.scalars(select(Attempt)).one()
        task = session.scalars(select(Task)).one()
    assert (attempt.status, attempt.error, attempt.exit_code) == ("preempted", "handed back", 75)
    assert (task.status, task.preemptions, task.errors) == ("queued", 1, 0)
    assert stage.services.executor.list() == []
    assert slug


def test_asked_to_hurry_it_waits_for_nobody(stage: Stage, service: Service):
    submit(stage, "Stubborn-v0")
    [file] = eventually(lambda: list((stage.home / "attempts").glob("*/pids.json")))
    assert json.loads(file.read_text())

    service.hurry()
    service.stop()

    assert stage.services.executor.list() == []


def test_a_killed_runner_leaves_its_logs_and_no_folders(stage: Stage, service: Service):
    submit(stage, "Stubborn-v0")
    [file] = eventually(lambda: list((stage.home / "attempts").glob("*/pids.json")))
    (file.parent / "output" / "checkpoints").mkdir(parents=True)
    (file.parent / "output" / "checkpoints" / "model_1.pt").write_bytes(b"x" * 1000)

    service.hurry()
    service.stop()

    assert not (file.parent / "output").exists()
    assert (file.parent / "runner.log").read_text() == "this is Stubborn-v0\n"
