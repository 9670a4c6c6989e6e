"""The user's own environments: their mistakes are told as theirs, at once, and are not tried again."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

THEIRS = """
import gymnasium
import numpy as np


class Walker(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, speed_weight, terrain="flat"):
        self.speed_weight = speed_weight
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.np_random.normal(size=2).astype(np.float32), {}

    def step(self, action):
        assert np.isfinite(action).all(), "the motors cannot do that"
        self.steps += 1
        done = self.steps == 20
        info = {"is_success": done} if done else {}
        return self.np_random.normal(size=2).astype(np.float32), self.speed_weight, done, False, info


class WithoutAssets(Walker):
    def __init__(self):
        raise RuntimeError("robot.usd is not there")


class GoesBad(Walker):
    total = 0

    def step(self, action):
        observation, *rest = super().step(action)
        GoesBad.total += 1
        return observation * (np.nan if GoesBad.total > 5 * 2048 else 1), *rest


class Secretive(Walker):
    def __init__(self):
        super().__init__(1.0)
        self.hidden = iter(range(3))

    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed)
        print("START", observation.tolist(), file=open("starts.txt", "a"))
        return observation, info


gymnasium.register("Walker-v0", entry_point="theirs:Walker", kwargs={"speed_weight": 1.0})
gymnasium.register("WithoutAssets-v0", entry_point="theirs:WithoutAssets")
gymnasium.register("Absent-v0", entry_point="no_such_package.envs:Env")
gymnasium.register("GoesBad-v0", entry_point="theirs:GoesBad", kwargs={"speed_weight": 1.0})
gymnasium.register("Secretive-v0", entry_point="theirs:Secretive")
"""


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    (tmp_path / "theirs.py").write_text(THEIRS)
    return tmp_path


def config(task_name: str, **fields: Any) -> dict[str, Any]:
    return {"task_name": task_name, "num_envs": 2, "max_iterations": 1, "seed": 0, **fields}


@pytest.mark.parametrize(
    ("task_name", "fields", "words"),
    [
        ("WithoutAssets-v0", {}, ["WithoutAssets-v0", "robot.usd is not there"]),
        ("Absent-v0", {}, ["Absent-v0", "no_such_package"]),
        ("theirs:Walkr-v0", {}, ["theirs:Walkr-v0", "Walker-v0"]),
        ("Walker-v0", {"reward_weights": {"terrain": 1.0}}, ["reward_weights", "terrain", "speed_weight"]),
    ],
)
def test_a_mistake_of_the_users_environment_is_told_and_not_tried_again(
    trainer, theirs: Path, task_name: str, fields: dict[str, Any], words: list[str]
):
    ended = trainer.run(config(task_name, **fields), "--import", "theirs", path=theirs)

    assert ended.code == 2, ended.stderr
    for word in words:
        assert word in ended.events("failed")[0]["message"]


def test_a_script_that_exits_when_it_is_imported_is_no_success(trainer, theirs: Path):
    (theirs / "script.py").write_text("import sys\n\nsys.exit(0)\n")

    ended = trainer.run(config("Walker-v0"), "--import", "script", path=theirs)

    assert ended.code == 2
    assert "script" in ended.events("failed")[0]["message"]


def test_a_registered_argument_is_a_reward_weight_and_success_is_reported(trainer, theirs: Path):
    weights = {"speed_weight": 2.5}

    ended = trainer.run(config("Walker-v0", reward_weights=weights), "--import", "theirs", path=theirs)

    assert ended.code == 0, ended.stderr
    assert ended.summary["mean_reward"] == pytest.approx(2.5 * 20)
    assert ended.events("iteration")[0]["success_rate"] == 100.0


def test_a_physics_run_knows_success_from_the_environment(trainer, theirs: Path):
    physics = {"task_name": "Walker-v0", "num_envs": 2, "steps": 50, "params": {"terrain": "rough"}}

    ended = trainer.run(physics, "--import", "theirs", physics=True, path=theirs)

    assert ended.code == 0, ended.stderr
    assert ended.summary["task_metrics"]["success"] is True


def test_a_simulator_that_chokes_on_nan_is_a_divergence(trainer, theirs: Path):
    ended = trainer.run(config("GoesBad-v0", max_iterations=20), "--import", "theirs", path=theirs)

    assert ended.code == 3, ended.stderr
    [failed] = ended.events("failed")
    assert (failed["iteration"], failed["term"]) == (6, "observation policy")


def test_a_resume_does_not_play_the_first_episodes_again(trainer, theirs: Path):
    def started_from(folder: str, **how: Any) -> list[str]:
        (theirs / folder).mkdir()
        ended = trainer.run(how["config"], *how["say"], path=theirs, cwd=theirs / folder)
        assert ended.code == 0, ended.stderr
        starts.append((theirs / folder / "starts.txt").read_text().splitlines())
        return [str(ended.output / "checkpoints/model_1.pt")]

    starts: list[list[str]] = []
    say = ["--import", "theirs"]
    [checkpoint] = started_from("first", config=config("Secretive-v0"), say=say)
    started_from(
        "second",
        config=config("Secretive-v0", max_iterations=2),
        say=[*say, "--resume", checkpoint],
    )

    assert not set(starts[0]) & set(starts[1])


def test_a_wrong_task_is_told_before_torch_is_imported(tmp_path: Path):
    (tmp_path / "torch.py").write_text("raise ImportError('torch was imported')\n")
    (tmp_path / "config.json").write_text('{"task_name": "InvertedPendulm-v5"}')
    command = [sys.executable, "-m", "trainer", "--config", "config.json", "--output", "out"]

    ended = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ended.returncode == 2
    assert "InvertedPendulum-v5" in ended.stderr


def test_a_physics_run_stops_when_it_is_asked_to(trainer):
    physics = {"num_envs": 4, "steps": 100_000_000, "seed": 0}
    process, output = trainer.start(physics, physics=True)
    try:
        events, deadline = output / "events.jsonl", time.monotonic() + 60
        while time.monotonic() < deadline and not (events.exists() and "started" in events.read_text()):
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    finally:
        process.kill()

    assert process.returncode == 75
    assert not (output / "summary.json").exists()


def test_mujoco_writes_nothing_outside_the_output_folder(trainer, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    physics = {"task_name": "HalfCheetah-v5", "num_envs": 1, "steps": 2}
    ended = trainer.run(physics, physics=True, cwd=elsewhere)

    assert ended.code == 0, ended.stderr
    assert list(elsewhere.iterdir()) == []
    assert len({event["message"] for event in ended.events("warning")}) == len(ended.events("warning"))
