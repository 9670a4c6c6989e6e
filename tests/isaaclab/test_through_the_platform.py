"""The whole path: one command, a repository by URL, a trainer that is killed, and a policy in the end."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from trainers import LIMIT_S, Trainer, own_platform

HERE = Path(__file__).parent
ITERATIONS = 30


@pytest.fixture
def variables(isaaclab: Trainer, tmp_path: Path) -> Iterator[dict[str, str]]:
    with own_platform(isaaclab, tmp_path / "home") as variables:
        yield variables


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = shutil.copytree(HERE / "project", tmp_path / "rail")
    git = ["git", "-c", "user.name=User", "-c", "user.email=user@example.com"]
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "Rail robot"]):
        subprocess.run([*git, *command], cwd=folder, check=True)
    return folder


def test_a_project_trains_by_url_and_a_killed_trainer_is_gone_on_with(
    variables: dict[str, str], repository: Path, tmp_path: Path
) -> None:
    overrides = [
        "task.task_name=Rail-Balance-Direct-v0",
        f"task.code_url={repository}",
        "++task.reward_weights.alive_reward=2",
        "num_envs=32",
        f"max_iterations={ITERATIONS}",
        "seed=1",
        "name=rail",
    ]
    with (tmp_path / "command.log").open("w") as log:
        command = subprocess.Popen(
            [sys.executable, "-m", "canard_hydra", *overrides],
            cwd=tmp_path,
            env=variables,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        _kill_the_trainer_after_iteration(6, tmp_path / "home", command)
        code = command.wait(timeout=LIMIT_S)
    finally:
        command.kill()
        command.wait()

    said = (tmp_path / "command.log").read_text()
    assert code == 0, said[-3000:]
    assert "completed" in said
    checkpoints = [str(path) for path in (tmp_path / "home" / "artifacts").rglob(f"model_{ITERATIONS}.pt")]
    assert ["attempt-2" in path for path in checkpoints] == [True]


def _kill_the_trainer_after_iteration(iteration: int, home: Path, command: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not list((home / "attempts").glob(f"*/output/checkpoints/model_{iteration}.pt")):
        assert command.poll() is None, "the command ended before"
        assert time.monotonic() < deadline, f"no checkpoint within {LIMIT_S} s"
        time.sleep(0.3)
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if "trainer" in words and "--output" in words and any(word.startswith(str(home)) for word in words):
            process.send_signal(signal.SIGKILL)
