"""`python -m trainer evaluate`: what a policy is worth, said the same each time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

CONFIG = {"task_name": "Canard-Cartpole-v0", "num_envs": 128, "max_iterations": 120, "seed": 3}

SUCCEEDING = """
import gymnasium
import numpy as np

class Counting(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.number, self.left = getattr(self, "number", 0) + 1, 5
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.left -= 1
        done = self.left == 0
        info = {"is_success": self.number % 4 == 0} if done else {}
        return np.zeros(2, np.float32), 1.0, done, False, info

gymnasium.register("Counting-v0", entry_point="user_code:Counting")
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    command = [sys.executable, "-m", "trainer", "--config", "config.json", "--output", "out"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(
        [*command, "--device", "cpu"],
        cwd=folder,
        env=environment,
        check=True,
        capture_output=True,
        timeout=150,
    )
    return folder / "out/checkpoints"


def evaluate(folder: Path, checkpoint: Path, *arguments: str, path: Path | None = None):
    output = folder / f"evaluation{len(list(folder.iterdir()))}"
    command = [sys.executable, "-m", "trainer", "evaluate", "--checkpoint", str(checkpoint)]
    command += ["--output", str(output), "--device", "cpu", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=150, check=False
    )
    file = output / "evaluation.json"
    return ended, json.loads(file.read_text()) if file.exists() else None


def test_a_trained_policy_is_worth_more_than_a_beginner_and_the_same_each_time(trained, tmp_path):
    ended, trained_well = evaluate(tmp_path, trained / "model_120.pt", "--episodes", "30")
    _, again = evaluate(tmp_path, trained / "model_120.pt", "--episodes", "30")
    _, beginner = evaluate(tmp_path, trained / "model_12.pt", "--episodes", "30")

    assert ended.returncode == 0, ended.stderr
    assert trained_well["returns"] == again["returns"]
    assert (len(trained_well["returns"]), trained_well["iteration"]) == (30, 120)
    assert trained_well["mean_return"] > 450 > beginner["mean_return"]
    assert trained_well["mean_return"] == pytest.approx(sum(trained_well["returns"]) / 30)
    assert trained_well["success_rate"] is None
    assert "30 episodes of Canard-Cartpole-v0 by model_120.pt: return" in ended.stdout


def test_another_seed_gives_other_episodes_and_environments_share_them(trained, tmp_path):
    _, one = evaluate(tmp_path, trained / "model_12.pt", "--episodes", "7", "--num-envs", "3")
    _, other = evaluate(
        tmp_path, trained / "model_12.pt", "--episodes", "7", "--num-envs", "3", "--seed", "8"
    )

    assert (len(one["returns"]), one["num_envs"], other["seed"]) == (7, 3, 8)
    assert one["returns"] != other["returns"]


def test_success_is_the_share_of_episodes_that_say_so(trainer, tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code/user_code.py").write_text(SUCCEEDING)
    config = {"task_name": "Counting-v0", "num_envs": 2, "max_iterations": 1, "seed": 1}
    made = trainer.run(config, "--import", "user_code", path=tmp_path / "code")
    assert made.code == 0, made.stderr
    checkpoint = made.output / "checkpoints/model_1.pt"
    how = ("--episodes", "8", "--num-envs", "1", "--import", "user_code")

    ended, told = evaluate(tmp_path, checkpoint, *how, path=tmp_path / "code")

    assert ended.returncode == 0, ended.stderr
    assert told["lengths"] == [5] * 8
    assert told["success_rate"] == 25.0


def test_a_file_of_rsl_rls_own_needs_a_config(trained, tmp_path):
    contents = torch.load(trained / "model_120.pt", weights_only=True)
    del contents["canard"]
    torch.save(contents, tmp_path / "foreign.pt")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))

    without, _ = evaluate(tmp_path, tmp_path / "foreign.pt", "--episodes", "4")
    ended, told = evaluate(tmp_path, tmp_path / "foreign.pt", "--episodes", "4", "--config", "config.json")

    assert without.returncode == 2
    assert "--config" in without.stderr
    assert ended.returncode == 0, ended.stderr
    assert len(told["returns"]) == 4


@pytest.mark.parametrize(
    ("checkpoint", "arguments", "said"),
    [
        ("model_121.pt", [], "no such file; there are"),
        ("model_120.pt", ["--episodes", "0"], "--episodes: must be at least 1"),
        ("model_120.pt", ["--num-envs", "0"], "--num-envs"),
        ("model_120.pt", ["--config", "other.json"], "checkpoint has [4, 64, 64, 1]"),
    ],
)
def test_what_cannot_be_evaluated_is_one_line(trained, tmp_path, checkpoint, arguments, said):
    (tmp_path / "other.json").write_text(json.dumps({**CONFIG, "actor_hidden_dims": [8]}))

    ended, told = evaluate(tmp_path, trained / checkpoint, *arguments)

    assert (ended.returncode, told) == (2, None)
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
