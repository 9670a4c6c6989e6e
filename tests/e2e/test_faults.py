"""kill -9 at the worst moments: the task ends completed, on the attempt and iteration that it should."""

import json
import re
import signal
import socket
import sqlite3
from pathlib import Path

import pytest
from attempts import eventually, is_running
from processes import runner_of, trainer_of

from canard import Client

pytestmark = pytest.mark.e2e

MAX_ITERATIONS = 8


def submit(client: Client, repository, *, gpu_count: int = 1):
    return client.submit_training_run(
        name="fault",
        task_name="Hover-v0",
        code_url=repository.url,
        num_envs=2,
        max_iterations=MAX_ITERATIONS,
        gpu_count=gpu_count,
        seed=1,
    )


def iterations_done(client: Client, slug: str) -> int:
    return client.get_run_tasks(slug)[0].training.current_iteration


def checkpoints(client: Client, slug: str, attempt: int) -> list[int]:
    keys = [a["s3_key"] for a in client.list_artifacts(slug, artifact_type="checkpoint")]
    return sorted(int(n) for key in keys for n in re.findall(rf"/attempt-{attempt}/.*model_(\d+)\.pt", key))


def resumed_from(home: Path) -> int:
    """What the newest attempt's runner started its trainer with."""
    log = max((home / "attempts").glob("*/runner.log"), key=lambda path: path.stat().st_mtime).read_text()
    iteration, *_older = re.findall(r"--resume \S*model_(\d+)\.pt", log)
    return int(iteration)


def first_iteration(home: Path, slug: str, attempt: int) -> int:
    """The first that the attempt did, as the database has it."""
    query = (
        "SELECT min(points.iteration) FROM points JOIN tasks ON tasks.id = points.task_id"
        " JOIN runs ON runs.id = tasks.run_id WHERE runs.slug = ? AND points.attempt = ?"
    )
    connection = sqlite3.connect(f"file:{home / 'platform.db'}?mode=ro", uri=True)
    try:
        [[found]] = connection.execute(query, (slug, attempt)).fetchall()
    finally:
        connection.close()
    return found


def assert_completed_on_attempt_2(client: Client, home: Path, run) -> None:
    run.wait_for_completion(timeout_s=150)
    [task] = client.get_run_tasks(run.slug)
    assert (task.status, task.attempt) == ("completed", 2)
    iteration = resumed_from(home)
    assert iteration == checkpoints(client, run.slug, attempt=1)[-1]
    assert first_iteration(home, run.slug, attempt=2) == iteration + 1
    history = [point["iteration"] for point in run.get_metrics().training.reward_history]
    assert history == list(range(1, MAX_ITERATIONS + 1))


@pytest.mark.timeout(300)
def test_a_killed_trainer_goes_on_from_its_newest_checkpoint(platform, client, slow_repository):
    run = submit(client, slow_repository)
    eventually(lambda: iterations_done(client, run.slug) >= 3, within_s=120)

    trainer_of(runner_of(platform.home)).send_signal(signal.SIGKILL)

    assert_completed_on_attempt_2(client, platform.home, run)


@pytest.mark.timeout(300)
def test_a_killed_rank_of_two_ends_the_attempt_and_the_next_goes_on(platform, client, slow_repository):
    run = submit(client, slow_repository, gpu_count=2)
    eventually(lambda: iterations_done(client, run.slug) >= 3, within_s=120)
    ranks = trainer_of(runner_of(platform.home)).children()

    [second] = [rank for rank in ranks if rank.environ()["RANK"] == "1"]
    second.send_signal(signal.SIGKILL)

    assert_completed_on_attempt_2(client, platform.home, run)
    assert not any(is_running(rank.pid) for rank in ranks)


@pytest.mark.timeout(300)
def test_a_killed_runner_leaves_no_trainer_and_the_next_goes_on(platform, client, slow_repository):
    run = submit(client, slow_repository)
    eventually(lambda: checkpoints(client, run.slug, attempt=1)[2:], within_s=120)
    runner = runner_of(platform.home)
    trainer = trainer_of(runner)

    runner.send_signal(signal.SIGKILL)

    eventually(lambda: not is_running(trainer.pid))
    assert_completed_on_attempt_2(client, platform.home, run)


@pytest.mark.timeout(300)
def test_a_newest_checkpoint_that_is_not_sound_is_passed_over(platform, client, slow_repository):
    run = submit(client, slow_repository)
    eventually(lambda: checkpoints(client, run.slug, attempt=1)[2:], within_s=120)
    runner = runner_of(platform.home)
    runner.send_signal(signal.SIGSTOP)
    newest = checkpoints(client, run.slug, attempt=1)[-1]
    [task] = client.get_run_tasks(run.slug)
    stored = platform.home / "artifacts" / f"runs/{run.slug}/tasks/{task.id}/attempt-1/checkpoints"
    path = stored / f"model_{newest}.pt"
    path.write_bytes(path.read_bytes()[:1000])

    runner.send_signal(signal.SIGKILL)

    run.wait_for_completion(timeout_s=150)
    assert resumed_from(platform.home) == newest - 1
    [task] = client.get_run_tasks(run.slug)
    assert (task.status, task.attempt) == ("completed", 2)


@pytest.mark.timeout(300)
def test_a_service_that_is_killed_and_started_again_costs_no_attempt(
    serve, tmp_path, slow_repository, monkeypatch
):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    home = tmp_path / "home"
    served = serve(home, "--port", port)
    monkeypatch.setenv("CANARD_HOME", str(home))
    with Client(api_url=served.url) as client:
        run = submit(client, slow_repository)
        eventually(lambda: iterations_done(client, run.slug) >= 2, within_s=120)
        runner = runner_of(home)

        served.process.kill()
        served.process.wait()
        (home / "platform.json").unlink()
        eventually(lambda: _has_reported(home, runner.pid), within_s=120)
        serve(home, "--port", port)

        run.wait_for_completion(timeout_s=120)
        [task] = client.get_run_tasks(run.slug)
        assert (task.status, task.attempt) == ("completed", 1)


def _has_reported(home: Path, runner: int) -> bool:
    """Whether the task is done, and its runner waits for somebody to tell."""
    reports = list((home / "attempts").glob("*/report.json"))
    assert reports or is_running(runner)
    return bool(reports) and json.loads(reports[0].read_text())["outcome"] == "completed"
