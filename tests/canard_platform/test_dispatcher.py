"""The dispatcher over real runner processes: launch, notice, kill, go on after a restart."""

import json
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import psutil
import pytest
from stage import Stage

from canard_platform.clock import SystemClock
from canard_platform.dispatcher import Dispatcher, Launch

LAUNCH = Launch(trainer_python="python", git_cache="/nowhere")


@pytest.fixture
def stage(open_stage) -> Stage:
    return open_stage(clock=SystemClock(), settings={"retry_delay_s": 0, "linger_s": 0.5})


@pytest.fixture
def dispatcher(stage: Stage) -> Dispatcher:
    return Dispatcher(stage.services, LAUNCH)


def submit(stage: Stage, task_name: str, **fields: Any) -> str:
    config = {"task_name": task_name, "max_iterations": 1}
    slug: str = stage.submit(training_config=config, **fields)["slug"]
    return slug


def until(dispatcher: Dispatcher, condition: Callable[[], Any], within_s: float = 60) -> Any:
    deadline = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        dispatcher.tick()
        time.sleep(0.02)
    return found


def status(stage: Stage, slug: str) -> str:
    return stage.run(slug)["status"]


def runner_pids(stage: Stage) -> list[int]:
    """The newest attempt's runner and its two children, once they are there."""
    files = sorted((stage.home / "attempts").glob("*/pids.json"), key=lambda file: file.stat().st_mtime)
    return json.loads(files[-1].read_text()) if files else []


def are_gone(pids: list[int]) -> bool:
    return not any(
        psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in pids
    )


def test_a_sweep_is_worked_off_slot_by_slot(stage: Stage, dispatcher: Dispatcher):
    slug = submit(stage, "Complete-v0", sweep_configs=[{"parameter": "seed", "values": [1, 2, 3, 4, 5]}])
    busy = []

    def done() -> bool:
        busy.append(2 - stage.services.executor.capacity()[0].free)
        return status(stage, slug) == "completed"

    until(dispatcher, done)

    assert max(busy) == 2
    assert [task["attempt"] for task in stage.tasks(slug)] == [1] * 5
    assert all(task["worker_id"] for task in stage.tasks(slug))


def test_a_runner_that_dies_is_followed_by_a_second_attempt_long_before_its_lease(
    stage: Stage, dispatcher: Dispatcher
):
    slug = submit(stage, "CrashOnce-v0")

    until(dispatcher, lambda: status(stage, slug) == "completed", within_s=30)

    [task] = stage.tasks(slug)
    assert task["attempt"] == 2
    assert stage.services.settings.lease_s >= 60


def test_a_runner_that_always_ends_without_a_report_fails_with_its_last_words(
    stage: Stage, dispatcher: Dispatcher
):
    slug = submit(stage, "Return-5")

    until(dispatcher, lambda: status(stage, slug) == "failed")

    [task] = stage.tasks(slug)
    assert task["attempt"] == 3
    assert task["error_message"] == (
        "the attempt's runner ended with code 5 without a report\nthis is Return-5"
    )


def test_a_task_that_cannot_be_launched_fails_and_says_why(open_stage):
    stage = open_stage(clock=SystemClock(), settings={"retry_delay_s": 0}, command=("/no/such/interpreter",))
    slug = submit(stage, "Complete-v0")

    until(Dispatcher(stage.services, LAUNCH), lambda: status(stage, slug) == "failed")

    assert "/no/such/interpreter" in stage.tasks(slug)[0]["error_message"]


def test_a_cancel_reaches_the_runner_by_its_heartbeat(stage: Stage, dispatcher: Dispatcher):
    slug = submit(stage, "UntilCancelled-v0")
    until(dispatcher, lambda: status(stage, slug) == "running")

    stage.http.post(f"/runs/{slug}/cancel")

    until(dispatcher, lambda: status(stage, slug) == "cancelled")
    until(dispatcher, lambda: stage.services.executor.list() == [])


def test_a_runner_that_does_not_hear_the_cancel_is_dead_before_the_task_is_cancelled(open_stage):
    stage = open_stage(clock=SystemClock(), settings={"cancel_grace_s": 0.5})
    dispatcher = Dispatcher(stage.services, LAUNCH)
    slug = submit(stage, "Stubborn-v0")
    pids = until(dispatcher, lambda: runner_pids(stage))

    stage.http.post(f"/runs/{slug}/cancel")
    seen = []

    def cancelled() -> bool:
        state = status(stage, slug)
        seen.append((state, are_gone(pids)))
        return state == "cancelled"

    until(dispatcher, cancelled)
    assert ("cancelled", False) not in seen
    assert ("running", False) in seen


def test_a_runner_whose_lease_ran_out_is_killed_before_its_task_comes_back(open_stage):
    stage = open_stage(settings={"retry_delay_s": 0, "lease_s": 5, "heartbeat_s": 1}, slots=1)
    dispatcher = Dispatcher(stage.services, LAUNCH)
    slug = submit(stage, "Stubborn-v0")
    pids = until(dispatcher, lambda: runner_pids(stage))
    os.kill(pids[0], signal.SIGSTOP)

    for _ in range(8):
        stage.clock.advance(1)
        dispatcher.tick()

    [task] = stage.tasks(slug)
    assert (task["status"], task["attempt"]) == ("running", 2)
    assert are_gone(pids)


def test_a_machine_that_slept_gives_its_attempts_time_to_report(open_stage):
    stage = open_stage(settings={"lease_s": 60, "heartbeat_s": 3})
    dispatcher = Dispatcher(stage.services, LAUNCH)
    slug = submit(stage, "Stubborn-v0")
    until(dispatcher, lambda: runner_pids(stage))

    stage.clock.advance(3600)
    dispatcher.tick()
    after_waking = stage.tasks(slug)[0]["attempt"]
    for _ in range(15):
        stage.clock.advance(1)
        dispatcher.tick()

    assert after_waking == 1
    assert stage.tasks(slug)[0]["attempt"] == 2


def test_a_new_service_goes_on_with_the_attempts_of_a_killed_one(open_stage):
    """Nothing but files and rows connects the two."""
    old = open_stage(clock=SystemClock())
    slug = submit(old, "Sleep-v0")
    pids = until(Dispatcher(old.services, LAUNCH), lambda: runner_pids(old))

    new = open_stage(clock=SystemClock())
    dispatcher = Dispatcher(new.services, LAUNCH)
    dispatcher.recover()
    dispatcher.tick()
    kept = new.tasks(slug)[0]
    os.kill(pids[0], signal.SIGKILL)
    until(dispatcher, lambda: new.tasks(slug)[0]["attempt"] == 2)

    assert (kept["status"], kept["attempt"]) == ("running", 1)
    assert are_gone(pids)


def test_an_attempt_that_was_claimed_and_never_launched_comes_back_for_free(stage: Stage):
    slug = submit(stage, "Complete-v0")
    stage.claim()

    Dispatcher(stage.services, LAUNCH).recover()

    assert status(stage, slug) == "queued"
    until(Dispatcher(stage.services, LAUNCH), lambda: status(stage, slug) == "completed")


def test_stopping_takes_every_process_and_queues_the_tasks_again(open_stage):
    stage = open_stage(clock=SystemClock(), settings={"stop_grace_s": 0.5})
    dispatcher = Dispatcher(stage.services, LAUNCH)
    slug = submit(stage, "Stubborn-v0")
    pids = until(dispatcher, lambda: runner_pids(stage))

    dispatcher.drain()

    assert are_gone(pids)
    [task] = stage.tasks(slug)
    assert task["status"] == "queued"


def test_a_stopping_service_starts_nothing(stage: Stage, dispatcher: Dispatcher):
    slug = submit(stage, "Complete-v0")
    stage.services.stopping.set()

    dispatcher.tick()

    assert status(stage, slug) == "queued"
    refused = stage.http.post("/runs", json={"name": "x", "config": {"mode": "physics"}})
    assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")


def test_the_output_of_a_runner_can_be_read_while_it_runs(stage: Stage, dispatcher: Dispatcher):
    slug = submit(stage, "Sleep-v0")
    [task] = stage.tasks(slug)
    path = f"/runs/{slug}/tasks/{task['id']}/logs"
    before = stage.http.get(path)
    until(dispatcher, lambda: runner_pids(stage))

    log = stage.http.get(path)

    assert (before.status_code, before.json()["code"]) == (404, "not_found")
    assert (log.status_code, log.text) == (200, "this is Sleep-v0\n")
    assert stage.http.get(path, params={"attempt": 2}).status_code == 404
    assert log.headers["content-type"].startswith("text/plain")


def test_a_log_that_was_uploaded_is_read_from_there(stage: Stage):
    slug = submit(stage, "Complete-v0")
    worker = stage.claim()
    worker.upload("logs/trainer.log", "Zeile 1\nZeile 2é\n".encode(), "log")

    log = stage.http.get(f"/runs/{slug}/tasks/{worker.claim.task_id}/logs")

    assert log.text == "Zeile 1\nZeile 2é\n"
