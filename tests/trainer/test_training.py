"""The contract of `python -m trainer`: events, checkpoints, exit codes, the end marker."""

import hashlib
from pathlib import Path

import onnxruntime
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from trainer.simulators.cartpole import Cartpole
from trainer.simulators.simulator import TaskRequest

SMALL = {"task_name": "Canard-Cartpole-v0", "num_envs": 16, "max_iterations": 12, "seed": 3}


def test_a_training_leaves_events_checkpoints_policy_and_its_end_marker(trainer):
    ended = trainer.run(SMALL)

    assert ended.code == 0, ended.stderr
    [started] = ended.events("started")
    assert (started["iteration"], started["simulator"], started["seed"]) == (0, "cartpole", 3)
    iterations = ended.events("iteration")
    assert [event["iteration"] for event in iterations] == list(range(1, 13))
    assert iterations[-1]["env_steps"] == 12 * 24 * 16
    for event in ended.events("checkpoint"):
        file = ended.output / event["path"]
        assert hashlib.sha256(file.read_bytes()).hexdigest() == event["sha256"]
        assert file.stat().st_size == event["size_bytes"]
    assert ended.events("checkpoint")[-1]["path"] == "checkpoints/model_12.pt"
    assert ended.summary["final_checkpoint"] == "checkpoints/model_12.pt"
    assert ended.summary["first_mean_reward"] == iterations[0]["mean_reward"]
    assert not list(ended.output.rglob("*.tmp"))


def test_tensorboard_has_one_point_an_iteration_under_rsl_rls_tags(trainer):
    ended = trainer.run(SMALL)

    board = EventAccumulator(str(ended.output / "tensorboard")).Reload()
    rewards = board.Scalars("Train/mean_reward")
    assert [point.step for point in rewards] == list(range(1, 13))
    assert {"Loss/surrogate", "Loss/value", "Loss/learning_rate", "Policy/mean_std", "Perf/total_fps"} <= set(
        board.Tags()["scalars"]
    )


@pytest.mark.filterwarnings("ignore:.torch.jit.load. is deprecated:DeprecationWarning")
def test_exported_policies_act_as_the_checkpoint_does(trainer):
    ended = trainer.run({**SMALL, "max_iterations": 2, "task_name": "InvertedPendulum-v5", "num_envs": 2})

    assert ended.code == 0, ended.stderr
    saved = torch.load(ended.output / "checkpoints/model_2.pt", weights_only=True)["actor_state_dict"]
    observations = torch.randn(32, 4)
    normal = (observations - saved["obs_normalizer._mean"]) / (saved["obs_normalizer._std"] + 1e-2)
    layers = sorted({name.rsplit(".", 1)[0] for name in saved if name.startswith("mlp.")})
    for layer in layers:
        normal = normal @ saved[f"{layer}.weight"].T + saved[f"{layer}.bias"]
        if layer != layers[-1]:
            normal = torch.nn.functional.elu(normal)
    script = torch.jit.load(ended.output / "policy/policy.pt")
    session = onnxruntime.InferenceSession(str(ended.output / "policy/policy.onnx"))
    [onnx_actions] = session.run(None, {"obs": observations.numpy()})
    assert torch.allclose(script(observations), normal, atol=1e-5)
    assert torch.allclose(torch.from_numpy(onnx_actions), normal, atol=1e-5)


def test_a_dry_run_measures_a_few_iterations_of_the_real_config(trainer):
    ended = trainer.run({**SMALL, "max_iterations": 5000}, "--dry-run", "3")

    assert ended.code == 0, ended.stderr
    measured = ended.summary["dry_run"]
    assert ended.summary["iteration"] == 3
    assert measured["iteration_s"] > 0
    assert measured["startup_s"] > 0


def test_a_time_limit_is_no_failure_and_a_fall_is_no_time_limit():
    env = Cartpole(TaskRequest(task_name="Canard-Cartpole-v0", num_envs=2, seed=0, device="cpu")).env
    env.state = torch.tensor([[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    env.episode_length_buf = torch.tensor([499, 10])

    _, rewards, dones, extras = env.step(torch.zeros(2, 1))

    assert dones.tolist() == [1, 1]
    assert extras["time_outs"].tolist() == [True, False]
    assert rewards.tolist() == [1.0, 0.0]
    assert env.episode_length_buf.tolist() == [0, 0]


def test_inverted_pendulum_learns(trainer):
    ended = trainer.run({"task_name": "InvertedPendulum-v5", "num_envs": 16, "max_iterations": 25, "seed": 1})

    assert ended.code == 0, ended.stderr
    assert ended.summary["mean_reward"] >= 5 * ended.summary["first_mean_reward"]


def test_checkpoints_load_without_running_anybodys_code(trainer, tmp_path: Path):
    ended = trainer.run({**SMALL, "max_iterations": 1})

    contents = torch.load(ended.output / "checkpoints/model_1.pt", weights_only=True)
    assert contents["iter"] == 1
    assert {
        "actor_state_dict",
        "critic_state_dict",
        "optimizer_state_dict",
        "infos",
        "canard",
    } <= contents.keys()
