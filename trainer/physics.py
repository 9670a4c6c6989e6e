"""Physics runs: step the simulator under random actions, and measure."""

import time
from dataclasses import dataclass

import torch

from trainer.errors import Preempted
from trainer.report import SUCCESS_TAGS
from trainer.simulators.simulator import Simulator
from trainer.stop import StopRequest


@dataclass(frozen=True, kw_only=True)
class PhysicsResult:
    """Over all environments of one physics task."""

    env_steps_per_s: float
    total_reward: float
    """Mean over environments of the rewards summed over all steps."""
    collision_count: int
    """As the simulator counts them: `Simulator.count_collisions`."""
    episode_duration_s: float
    """Mean over finished episodes; of the unfinished ones if none finished."""
    success: bool
    """Every episode succeeded, where the task says what success is; else, no episode ended by failure."""
    wall_s: float


def step_physics(simulator: Simulator, *, steps: int, stop: StopRequest) -> PhysicsResult:
    """`steps` env steps in every environment, with actions drawn uniformly from the task's range.

    Raises:
        Preempted: a stop was requested; the steps are lost, the next attempt starts over.
    """
    env = simulator.env
    rewards_sum = torch.zeros(env.num_envs, device=env.device)
    lengths = torch.zeros(env.num_envs, device=env.device)
    finished: list[float] = []
    successes: list[float] = []
    collisions = failures = 0
    start = time.perf_counter()
    with torch.inference_mode():
        for _ in range(steps):
            if stop.requested:
                raise Preempted
            _, rewards, dones, extras = env.step(simulator.random_actions())
            rewards_sum += rewards
            lengths += 1
            done = dones > 0
            finished += lengths[done].tolist()
            lengths[done] = 0
            time_outs = extras.get("time_outs")
            failures += int((done & ~time_outs.bool()).sum() if time_outs is not None else done.sum())
            successes += [float(v) for tag, v in (extras.get("log") or {}).items() if tag in SUCCESS_TAGS]
            collisions += simulator.count_collisions()
    wall_s = time.perf_counter() - start
    ages = finished or lengths.tolist()
    return PhysicsResult(
        env_steps_per_s=steps * env.num_envs / wall_s,
        total_reward=float(rewards_sum.mean()),
        collision_count=collisions,
        episode_duration_s=sum(ages) / len(ages) * simulator.step_dt_s,
        success=min(successes) == 1.0 if successes else failures == 0,
        wall_s=wall_s,
    )
