"""Which checkpoints a later attempt hands to its trainer, and what becomes of those that are no good."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from attempts import RunnerProcess, eventually
from stage import Stage


@pytest.fixture
def ended_with(
    fast_stage: Stage, start: Callable[..., RunnerProcess], standin: str
) -> Callable[..., RunnerProcess]:
    """An attempt that was preempted after it had delivered these checkpoints."""

    def ended_with(checkpoints: dict[int, bytes], **options: Any) -> RunnerProcess:
        runner = start(fast_stage, trainer_python=standin, **options)
        eventually(lambda: runner.task["status"] == "running")
        runner.kill()
        runner.worker.start()
        for iteration, content in checkpoints.items():
            path = f"checkpoints/model_{iteration}.pt"
            runner.worker.upload(path, content, "checkpoint", iteration=iteration)
        runner.worker.commit("preempted")
        return runner

    return ended_with


def waiting(stage: Stage, **config: Any) -> str:
    """A run whose stand-in trainer says what it was handed."""
    return stage.submit(training_config={"task_name": "resumed", "max_iterations": 9, **config})["slug"]


def said(runner: RunnerProcess, attempt: int) -> str:
    assert runner.wait() == 0, runner.log
    return runner.artifact(f"attempt-{attempt}/logs/trainer.log").decode()


def warnings(runner: RunnerProcess) -> list[str]:
    return [line for line in runner.log.splitlines() if "is not sound" in line or "starts from" in line]


def stored(stage: Stage, runner: RunnerProcess, path: str) -> Path:
    return stage.home / "artifacts" / f"runs/{runner.slug}/tasks/{runner.task['id']}" / path


def test_three_are_handed_over_newest_first_and_what_the_user_named_last(
    fast_stage, start, standin, ended_with, tmp_path
):
    named = tmp_path / "model_0.pt"
    named.write_bytes(b"named")
    slug = waiting(fast_stage, checkpoint_url=str(named))
    ended_with({1: b"1", 2: b"2", 5: b"5", 10: b"10"}, slug=slug)

    second = start(fast_stage, trainer_python=standin, slug=slug)

    assert "resumed from 10, else 5, else 2, else named\n" in said(second, 2)


def test_checkpoints_of_one_name_from_two_attempts_are_both_there(fast_stage, start, standin, ended_with):
    slug = waiting(fast_stage)
    ended_with({5: b"of the first"}, slug=slug)
    ended_with({5: b"of the second"}, slug=slug)

    third = start(fast_stage, trainer_python=standin, slug=slug)

    assert "resumed from of the second, else of the first\n" in said(third, 3)


def test_an_older_one_that_cannot_be_fetched_is_no_problem(fast_stage, start, standin, ended_with, tmp_path):
    named = tmp_path / "model_0.pt"
    named.write_bytes(b"named")
    slug = waiting(fast_stage, checkpoint_url=str(named))
    first = ended_with({1: b"1", 2: b"2", 3: b"3"}, slug=slug)
    stored(fast_stage, first, "attempt-1/checkpoints/model_2.pt").unlink()
    named.unlink()

    second = start(fast_stage, trainer_python=standin, slug=slug)

    assert "resumed from 3, else 1\n" in said(second, 2)
    assert warnings(second) == []


def test_none_of_its_own_and_what_the_user_named_is_the_beginning_again(
    fast_stage, start, standin, ended_with, tmp_path
):
    named = tmp_path / "model_0.pt"
    named.write_bytes(b"named")
    slug = waiting(fast_stage, checkpoint_url=str(named))
    first = ended_with({3: b"3"}, slug=slug)
    stored(fast_stage, first, "attempt-1/checkpoints/model_3.pt").write_bytes(b"?")

    second = start(fast_stage, trainer_python=standin, slug=slug)

    assert "resumed from named\n" in said(second, 2)
    assert "starts from checkpoint_url" in second.log


CONFIG = {"task_name": "Canard-Cartpole-v0", "num_envs": 4, "max_iterations": 2, "seed": 1}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A checkpoint of one iteration, by the real trainer."""
    folder = tmp_path_factory.mktemp("sound")
    (folder / "config.json").write_text(json.dumps({**CONFIG, "max_iterations": 1}))
    command = [sys.executable, "-m", "trainer", "--config", "config.json", "--output", "out"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, timeout=120)
    return (folder / "out/checkpoints/model_1.pt").read_bytes()


def poisoned(sound: bytes) -> bytes:
    """Whole, and of no use."""
    contents = torch.load(io.BytesIO(sound), weights_only=True)
    contents["critic_state_dict"]["mlp.0.bias"][0] = float("nan")
    file = io.BytesIO()
    torch.save(contents, file)
    return file.getvalue()


def test_a_newest_one_that_is_not_finite_is_told_and_the_older_is_gone_on_from(
    fast_stage, start, ended_with, sound
):
    first = ended_with({1: sound, 2: poisoned(sound)}, **CONFIG)

    second = start(fast_stage, slug=first.slug)

    assert second.wait() == 0, second.log
    assert second.task["status"] == "completed"
    log = second.artifact("attempt-2/logs/trainer.log").decode()
    assert "model_2.pt: critic_state_dict.mlp.0.bias is not finite; the next one is tried" in log
    points = fast_stage.http.get(f"/runs/{first.slug}/metrics").json()["training"]["reward_history"]
    assert [point["iteration"] for point in points] == [2]


def test_when_all_of_its_own_are_refused_the_task_has_failed_for_good(fast_stage, start, ended_with, sound):
    first = ended_with({1: poisoned(sound), 2: poisoned(sound)}, **CONFIG)

    second = start(fast_stage, slug=first.slug)

    assert second.wait() == 0, second.log
    assert second.task["status"] == "failed"
    for name in ("model_1.pt", "model_2.pt"):
        assert f"{name}: critic_state_dict.mlp.0.bias is not finite" in second.task["error_message"]
