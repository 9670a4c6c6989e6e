"""What cannot train ends early, with one sentence and an exit code that says not to try again."""

import json
from pathlib import Path

import pytest
import torch

CARTPOLE = {"task_name": "Canard-Cartpole-v0", "num_envs": 4, "max_iterations": 2, "seed": 0}


def refused(trainer, config, *arguments, code: int = 2, **how) -> str:
    ended = trainer.run(config, *arguments, **how)
    assert ended.code == code, ended.stderr
    assert not (ended.output / "summary.json").exists()
    [failed] = ended.events("failed")
    assert failed["exit_code"] == code
    return failed["message"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"task_name": "InvertedPendulm-v5"}, ["InvertedPendulm-v5", "InvertedPendulum-v5"]),
        ({"task_name": "CartPole-v1"}, ["Discrete actions"]),
        ({"reward_weights": {"speed": 1.0}}, ["speed", "alive", "pole_angle"]),
        (
            {"task_name": "HalfCheetah-v5", "reward_weights": {"speed": 1.0}},
            ["speed", "forward_reward_weight"],
        ),
        ({"num_mini_batches": 1000}, ["num_mini_batches", "96 samples"]),
        ({"activation": "rleu"}, ["activation", "rleu", "relu"]),
        ({"learing_rate": 1e-3}, ["learing_rate", "learning_rate"]),
        ({"num_envs": 0}, ["num_envs"]),
    ],
)
def test_a_wrong_config_names_the_field_and_what_there_is(trainer, change, words):
    message = refused(trainer, {**CARTPOLE, **change})

    for word in words:
        assert word in message


def test_an_error_in_the_users_module_shows_their_own_traceback(trainer, tmp_path: Path):
    (tmp_path / "my_robot.py").write_text("import gymnasium\n\nraise RuntimeError('no such robot')\n")

    ended = trainer.run(CARTPOLE, "--import", "my_robot", path=tmp_path)

    assert ended.code == 2
    assert 'my_robot.py", line 3' in ended.stderr
    assert "no such robot" in ended.events("failed")[0]["message"]


@pytest.mark.parametrize("damage", ["missing", "empty", "truncated", "text", "nan", "other shape"])
def test_a_bad_checkpoint_is_refused_in_one_sentence(trainer, tmp_path: Path, damage: str):
    whole = trainer.run({**CARTPOLE, "max_iterations": 1})
    path = whole.output / "checkpoints/model_1.pt"
    bad, config = tmp_path / "model_7.pt", {**CARTPOLE, "max_iterations": 2}
    if damage == "empty":
        bad.write_bytes(b"")
    if damage == "truncated":
        bad.write_bytes(path.read_bytes()[:2000])
    if damage == "text":
        bad.write_text("not a checkpoint")
    if damage in ("nan", "other shape"):
        contents = torch.load(path, weights_only=True)
        if damage == "nan":
            contents["actor_state_dict"]["mlp.0.weight"][0, 0] = float("nan")
        torch.save(contents, bad)
    if damage == "other shape":
        config["actor_hidden_dims"] = [32, 16]

    message = refused(trainer, config, "--resume", str(bad))

    assert "checkpoint" in message
    if damage == "other shape":
        assert "actor_hidden_dims: checkpoint has [64, 64], config has [32, 16]" in message


def test_a_pickle_that_runs_code_is_not_loaded(trainer, tmp_path: Path):
    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "ran",))

    torch.save({"actor_state_dict": Evil()}, tmp_path / "model_1.pt")

    refused(trainer, CARTPOLE, "--resume", str(tmp_path / "model_1.pt"))

    assert not (tmp_path / "ran").exists()


POISONED = """
import gymnasium
import numpy as np


class Poisoned(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
    steps = 0

    def __init__(self, poison="reward"):
        self.poison = poison

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        bad = self.steps > 1024 * 5
        observation = np.full(2, np.nan if bad and self.poison == "observation" else 0.5, np.float32)
        reward = float("inf") if bad and self.poison == "reward" else 1.0
        return observation, reward, False, self.steps % 20 == 0, {}


gymnasium.register("PoisonedReward-v0", entry_point=Poisoned)
gymnasium.register("PoisonedObservation-v0", entry_point=Poisoned, kwargs={"poison": "observation"})
"""


@pytest.mark.parametrize("term", ["Reward", "Observation"])
def test_a_diverged_training_stops_at_once_and_keeps_the_last_good_checkpoint(
    trainer, tmp_path: Path, term: str
):
    (tmp_path / "poisoned.py").write_text(POISONED)
    config = {"task_name": f"Poisoned{term}-v0", "num_envs": 2, "max_iterations": 30, "seed": 0}

    ended = trainer.run(config, "--import", "poisoned", path=tmp_path)

    assert ended.code == 3, ended.stderr
    [failed] = ended.events("failed")
    assert failed["iteration"] == 6
    assert failed["term"].startswith(term.lower())
    saved = [event["iteration"] for event in ended.events("checkpoint")]
    assert saved == [3]
    assert not (ended.output / "summary.json").exists()


def test_what_json_cannot_say_is_marked(tmp_path: Path):
    from trainer.events import EventLog

    log = EventLog(tmp_path / "events.jsonl")
    log.emit("iteration", mean_reward=float("nan"), losses={"value": float("inf"), "entropy": 1.0})
    log.close()

    line = json.loads((tmp_path / "events.jsonl").read_text())
    assert line["mean_reward"] is None
    assert line["losses"] == {"value": None, "entropy": 1.0}
    assert line["nonfinite"] == ["mean_reward", "losses.value"]
