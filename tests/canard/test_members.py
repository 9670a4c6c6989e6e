"""From a RunConfig to its members."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from canard.errors import InvalidRequestError
from canard.members import count_members, members
from canard.models import PhysicsConfig, RunConfig, SweepConfig, TrainingConfig

BASE = TrainingConfig(task_name="Ant-v5", num_envs=64, reward_weights={"alive": 1.0, "torque": -0.1})


def run_config(**fields: Any) -> RunConfig:
    return RunConfig(**{"mode": "training", "training_config": BASE, **fields})


def sweep(**values: list[Any]) -> list[SweepConfig]:
    return [SweepConfig(parameter=name, values=list_) for name, list_ in values.items()]


def test_the_last_swept_parameter_varies_fastest():
    config = run_config(sweep_configs=sweep(learning_rate=[1e-4, 3e-4], entropy_coef=[0.01, 0.05]))

    assert [member.params for member in members(config)] == [
        {"learning_rate": 1e-4, "entropy_coef": 0.01},
        {"learning_rate": 1e-4, "entropy_coef": 0.05},
        {"learning_rate": 3e-4, "entropy_coef": 0.01},
        {"learning_rate": 3e-4, "entropy_coef": 0.05},
    ]
    assert [member.index for member in members(config)] == [0, 1, 2, 3]
    assert [member.config.num_envs for member in members(config)] == [64] * 4


def test_a_run_without_a_sweep_has_one_member():
    [member] = members(run_config())

    assert member.params == {}
    assert member.config == BASE


SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=3)


@given(sizes=SIZES, seed=st.integers(0, 2**32 - 1), part=st.floats(0, 1))
def test_samples_are_distinct_combinations_in_order_and_the_same_every_time(
    sizes: list[int], seed: int, part: float
):
    sweeps = [SweepConfig(parameter=f"p{n}", values=list(range(size))) for n, size in enumerate(sizes)]
    everything = [m.params for m in members(RunConfig(sweep_configs=sweeps))]
    samples = max(1, int(part * len(everything)))
    config = RunConfig(sweep_configs=sweeps, num_samples=samples, sample_seed=seed)

    drawn = [member.params for member in members(config)]

    assert len(drawn) == samples == count_members(config)
    positions = [everything.index(params) for params in drawn]
    assert positions == sorted(set(positions))
    assert drawn == [member.params for member in members(config)]
    assert math.prod(sizes) == len(everything)


def test_another_seed_draws_other_samples():
    sweeps = [SweepConfig(parameter="p", values=list(range(1000)))]

    first, second = (
        [m.params for m in members(RunConfig(sweep_configs=sweeps, num_samples=10, sample_seed=seed))]
        for seed in (1, 2)
    )

    assert first != second


def test_more_samples_than_combinations_are_refused():
    config = RunConfig(sweep_configs=sweep(mass=[1, 2]), num_samples=3)

    with pytest.raises(InvalidRequestError, match="make only 2 combinations") as refused:
        list(members(config))
    assert refused.value.field == "num_samples"


def test_explicit_tasks_are_taken_as_they_are():
    config = run_config(tasks=[{"learning_rate": 1e-5, "seed": 1}, {"seed": 2}, {"desired_kl": None}])

    made = list(members(config))

    assert count_members(config) == 3
    assert [member.params for member in made] == [
        {"learning_rate": 1e-5, "seed": 1},
        {"seed": 2},
        {"desired_kl": None},
    ]
    assert made[0].config.learning_rate == 1e-5
    assert made[1].config.seed == 2


def test_one_reward_weight_changes_and_the_others_stay():
    config = run_config(sweep_configs=[SweepConfig(parameter="reward_weights.torque", values=[-1, -2])])

    assert [member.config.reward_weights for member in members(config)] == [
        {"alive": 1.0, "torque": -1.0},
        {"alive": 1.0, "torque": -2.0},
    ]


@pytest.mark.parametrize(
    ("task", "field", "told"),
    [
        (
            {"learing_rate": 1e-4},
            "learing_rate",
            r"member 1 \(learing_rate=0.0001\).*did you mean 'learning_rate'",
        ),
        ({"num_envs": 20_000}, "num_envs", "member 1.*less than or equal to 10000"),
        ({"gamma": "0.9"}, "gamma", "must be a number"),
    ],
)
def test_a_wrong_member_is_named_with_its_field(task: dict[str, Any], field: str, told: str):
    with pytest.raises(InvalidRequestError, match=told) as refused:
        list(members(run_config(tasks=[{}, task])))

    assert refused.value.field == field


def test_a_parameter_swept_twice_is_refused():
    config = run_config(sweep_configs=[*sweep(gamma=[0.9]), *sweep(gamma=[0.99])])

    with pytest.raises(InvalidRequestError, match="'gamma' is swept twice"):
        list(members(config))


def test_a_physics_member_takes_task_envs_and_seed_from_the_training_config():
    config = run_config(mode="physics", steps=50, sweep_configs=sweep(pole_length=[0.5, 1.0]))

    assert [member.config for member in members(config)] == [
        PhysicsConfig(task_name="Ant-v5", num_envs=64, steps=50, params={"pole_length": length})
        for length in (0.5, 1.0)
    ]
