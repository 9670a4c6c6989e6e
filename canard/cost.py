"""Time and cost of a training before it ran.

Throughput: 82,000 env steps per second, simulation, inference and learning together, for the humanoid task
`Isaac-Velocity-Rough-G1-v0` with rsl-rl at 4096 environments on one RTX 4090 (NVIDIA, Isaac Lab
documentation, "Performance Benchmarks"). Few environments do not fill a GPU, so the estimate is low for
them; `mode=dry_run` measures instead of estimating.

Rate and speed-up by GPU count: Canard's documentation (about $0.50 per GPU hour; 1.0x, 1.7x, 2.9x for 1, 2
and 4 GPUs). 8 GPUs go by the same power law, n ** log2(1.7).
"""

ENV_STEPS_PER_S = 82_000.0
ENV_STEPS_PER_ENV_AND_ITERATION = 24
"""rsl-rl's `num_steps_per_env` in Isaac Lab's locomotion tasks."""

DOLLARS_PER_GPU_HOUR = 0.50
SPEED_UP = {1: 1.0, 2: 1.7, 4: 2.9, 8: 1.7**3}


def estimate_cost(
    *, num_envs: int, max_iterations: int, gpu_count: int, total_tasks: int = 1, iter_sec: float | None = None
) -> dict[str, float]:
    """Cost of `total_tasks` equal trainings; a measured `iter_sec` (s) takes the place of the model's."""
    if total_tasks < 1:
        raise ValueError(f"total_tasks must be at least 1, not {total_tasks}")
    if iter_sec is None:
        env_steps = num_envs * ENV_STEPS_PER_ENV_AND_ITERATION
        iter_sec = env_steps / ENV_STEPS_PER_S / SPEED_UP[gpu_count]
    hourly_rate = DOLLARS_PER_GPU_HOUR * gpu_count
    task_time_hr = iter_sec * max_iterations / 3600
    task_cost = task_time_hr * hourly_rate
    return {
        "iter_sec": iter_sec,
        "task_time_hr": task_time_hr,
        "task_cost": task_cost,
        "total_cost": task_cost * total_tasks,
        "wall_time_hr": task_time_hr,
        "hourly_rate": hourly_rate,
    }
