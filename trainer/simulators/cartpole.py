"""Cart and pole in pure torch: the task that needs no simulator.

Equations of motion and constants: A. Barto, R. Sutton, C. Anderson, "Neuronlike adaptive elements that can
solve difficult learning control problems" (1983), with the corrections of R. Florian (2007), as Gymnasium's
CartPole has them; the force is continuous here. One policy action in [-1, 1] is a share of `force_mag`.
"""

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict

from trainer.agent import default_agent_cfg
from trainer.errors import ConfigurationError
from trainer.simulators.cartpole_picture import draw
from trainer.simulators.simulator import TaskRequest

EPISODE_STEPS = 500
RAIL_END_M = 2.4
LARGEST_ANGLE_RAD = 12 * math.pi / 180
START_RANGE = 0.05

REWARD_WEIGHTS = {"alive": 1.0, "pole_angle": 0.0, "cart_position": 0.0, "effort": 0.0}
"""Term -> default weight. Per env step: 1, (angle / limit)^2, (position / rail end)^2, action^2."""


@dataclass(frozen=True)
class Physics:
    """SI units."""

    cart_mass: float = 1.0
    pole_mass: float = 0.1
    pole_length: float = 1.0
    gravity: float = 9.8
    force_mag: float = 10.0
    dt: float = 0.02


class CartpoleEnv(VecEnv):
    """Observation group `policy`: (num_envs, 4) = position, velocity, angle, angular velocity."""

    num_actions = 1
    max_episode_length = EPISODE_STEPS

    def __init__(self, request: TaskRequest, physics: Physics, weights: dict[str, float]) -> None:
        self.num_envs = request.num_envs
        self.device = torch.device(request.device)
        self.physics = physics
        self.weights = weights
        self.cfg = {"task_name": request.task_name, "physics": physics.__dict__, "reward_weights": weights}
        self.generator = torch.Generator(self.device).manual_seed(request.seed)
        self.episode_length_buf = torch.zeros(self.num_envs, dtype=torch.long, device=self.device)
        self.state = self._start_states()
        self.rail_end_hits = 0

    def get_observations(self) -> TensorDict:
        return TensorDict({"policy": self.state.clone()}, batch_size=[self.num_envs])

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        force = actions[:, 0].clamp(-1.0, 1.0)
        self.state = self._moved(force * self.physics.force_mag)
        self.episode_length_buf += 1

        hit_rail_end = self.state[:, 0].abs() > RAIL_END_M
        failed = hit_rail_end | (self.state[:, 2].abs() > LARGEST_ANGLE_RAD)
        time_outs = (self.episode_length_buf >= EPISODE_STEPS) & ~failed
        rewards = self._rewards(force, failed)
        dones = failed | time_outs
        self.rail_end_hits = int(hit_rail_end.sum())
        self.state = torch.where(dones.unsqueeze(1), self._start_states(), self.state)
        self.episode_length_buf[dones] = 0
        return self.get_observations(), rewards, dones.long(), {"time_outs": time_outs, "log": {}}

    def _moved(self, force: torch.Tensor) -> torch.Tensor:
        p = self.physics
        position, velocity, angle, spin = self.state.unbind(1)
        half_length = p.pole_length / 2
        mass = p.cart_mass + p.pole_mass
        push = (force + p.pole_mass * half_length * spin.square() * angle.sin()) / mass
        spin_rate = (p.gravity * angle.sin() - push * angle.cos()) / (
            half_length * (4.0 / 3.0 - p.pole_mass * angle.cos().square() / mass)
        )
        acceleration = push - p.pole_mass * half_length * spin_rate * angle.cos() / mass
        return torch.stack(
            (
                position + p.dt * velocity,
                velocity + p.dt * acceleration,
                angle + p.dt * spin,
                spin + p.dt * spin_rate,
            ),
            dim=1,
        )

    def _rewards(self, force: torch.Tensor, failed: torch.Tensor) -> torch.Tensor:
        terms = {
            "alive": (~failed).float(),
            "pole_angle": (self.state[:, 2] / LARGEST_ANGLE_RAD).square(),
            "cart_position": (self.state[:, 0] / RAIL_END_M).square(),
            "effort": force.square(),
        }
        return torch.stack([self.weights[name] * term for name, term in terms.items()]).sum(0)

    def _start_states(self) -> torch.Tensor:
        unit = torch.rand(self.num_envs, 4, generator=self.generator, device=self.device)
        return (2 * unit - 1) * START_RANGE


class Cartpole:
    """Implements Simulator."""

    name = "cartpole"
    start_at_random_episode_lengths = False
    resumes_within_episodes = True

    def __init__(self, request: TaskRequest) -> None:
        physics = _physics(request.physics_params)
        weights = _weights(request.reward_weights)
        self.env = CartpoleEnv(request, physics, weights)
        self.step_dt_s = physics.dt
        self.agent_cfg = _agent_cfg()
        self._action_generator = torch.Generator().manual_seed(request.seed)

    def state_dict(self) -> dict[str, Any]:
        return {
            "state": self.env.state.clone(),
            "episode_length": self.env.episode_length_buf.clone(),
            "generator": self.env.generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any], *, same_envs: bool) -> None:
        if not same_envs:
            return
        self.env.state = state["state"].to(self.env.device)
        self.env.episode_length_buf = state["episode_length"].to(self.env.device)
        generator = state["generator"].cpu()
        # Generators of a CPU and of a GPU are not alike; on the other device episodes start from new draws.
        if generator.shape == self.env.generator.get_state().shape:
            self.env.generator.set_state(generator)

    def random_actions(self) -> torch.Tensor:
        unit = torch.rand(self.env.num_envs, 1, generator=self._action_generator)
        return (2 * unit - 1).to(self.env.device)

    def count_collisions(self) -> int:
        return self.env.rail_end_hits

    def frame(self) -> np.ndarray:
        """Of environment 0."""
        position, _, angle, _ = self.env.state[0].tolist()
        return draw(position_m=position, angle_rad=angle, pole_length_m=self.env.physics.pole_length)

    def close(self) -> None:
        return


def make(request: TaskRequest) -> Cartpole:
    return Cartpole(request)


def _physics(params: dict[str, Any]) -> Physics:
    known = [field.name for field in fields(Physics)]
    for name, value in params.items():
        if name not in known:
            raise ConfigurationError(f"no physics parameter {name!r}; cartpole has {', '.join(known)}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise ConfigurationError(f"{name}: must be a number above 0, not {value!r}")
    return replace(Physics(), **{name: float(value) for name, value in params.items()})


def _weights(changed: dict[str, float]) -> dict[str, float]:
    for name in changed:
        if name not in REWARD_WEIGHTS:
            raise ConfigurationError(
                f"reward_weights: no term {name!r}; cartpole has {', '.join(REWARD_WEIGHTS)}"
            )
    return {**REWARD_WEIGHTS, **changed}


def _agent_cfg() -> dict[str, Any]:
    cfg = default_agent_cfg(num_steps_per_env=24, hidden_dims=[64, 64])
    cfg["algorithm"]["entropy_coef"] = 0.0
    return cfg
