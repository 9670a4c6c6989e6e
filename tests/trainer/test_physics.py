"""Physics runs really step, and what is measured follows the physics."""

import pytest


def test_cartpole_steps_and_fills_the_metrics(trainer):
    ended = trainer.run({"num_envs": 8, "steps": 400, "seed": 1}, physics=True)

    assert ended.code == 0, ended.stderr
    metrics = ended.summary["task_metrics"]
    assert ended.summary["env_steps"] == 3200
    assert metrics["avg_fps"] > 0
    assert 0 < metrics["total_reward"] <= 400
    assert metrics["success"] is False
    assert 0 < metrics["episode_duration"] < 10


def test_a_longer_pole_falls_later(trainer):
    config = {"num_envs": 32, "steps": 500, "seed": 1}

    short = trainer.run({**config, "params": {"pole_length": 0.5}}, physics=True).summary
    long = trainer.run({**config, "params": {"pole_length": 8.0}}, physics=True).summary

    assert long["task_metrics"]["episode_duration"] > 1.2 * short["task_metrics"]["episode_duration"]


def test_mujoco_counts_contacts_and_takes_constructor_arguments(trainer):
    config = {"task_name": "HalfCheetah-v5", "num_envs": 2, "steps": 100, "seed": 1}

    plain = trainer.run(config, physics=True).summary["task_metrics"]
    costly = trainer.run({**config, "params": {"ctrl_cost_weight": 10.0}}, physics=True).summary[
        "task_metrics"
    ]

    assert plain["collision_count"] > 0
    assert costly["total_reward"] < plain["total_reward"] - 100
    assert costly["collision_count"] == plain["collision_count"]


@pytest.mark.parametrize(
    ("params", "words"),
    [({"pole_lenght": 1.0}, ["pole_lenght", "pole_length"]), ({"gravity": -1.0}, ["gravity", "above 0"])],
)
def test_a_wrong_parameter_is_refused_with_the_known_ones(trainer, params, words):
    ended = trainer.run({"steps": 10, "params": params}, physics=True)

    assert ended.code == 2
    for word in words:
        assert word in ended.events("failed")[0]["message"]
