"""Estimates, worked out by hand."""

import pytest

from canard.models import TrainingConfig


def test_the_estimate_for_one_gpu_by_hand():
    # 4100 envs x 24 steps = 98,400 env steps an iteration; at 82,000 a second that is 1.2 s.
    config = TrainingConfig(task_name="Ant-v5", num_envs=4100, max_iterations=1500, gpu_count=1)

    assert config.estimate_cost(total_tasks=4) == pytest.approx(
        {
            "iter_sec": 1.2,
            "task_time_hr": 0.5,  # 1.2 s x 1500 / 3600
            "task_cost": 0.25,  # 0.5 h x $0.50
            "total_cost": 1.0,
            "wall_time_hr": 0.5,  # all four at once
            "hourly_rate": 0.5,
        }
    )


@pytest.mark.parametrize(("gpu_count", "speed_up"), [(1, 1.0), (2, 1.7), (4, 2.9), (8, 4.913)])
def test_more_gpus_are_faster_and_dearer_as_documented(gpu_count: int, speed_up: float):
    one = TrainingConfig(task_name="Ant-v5").estimate_cost()
    many = TrainingConfig(task_name="Ant-v5", gpu_count=gpu_count).estimate_cost()

    assert one["iter_sec"] / many["iter_sec"] == pytest.approx(speed_up)
    assert many["hourly_rate"] == pytest.approx(0.5 * gpu_count)
    assert many["task_cost"] == pytest.approx(many["task_time_hr"] * 0.5 * gpu_count)


def test_an_estimate_for_no_task_is_refused():
    with pytest.raises(ValueError, match="total_tasks must be at least 1"):
        TrainingConfig(task_name="Ant-v5").estimate_cost(total_tasks=0)
