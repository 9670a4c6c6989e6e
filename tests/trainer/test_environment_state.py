"""What a Gymnasium environment remembers is written down and put back, or it is said that it cannot be."""

import io
from collections import deque
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from trainer.simulators import gymnasium as simulators
from trainer.simulators.cartpole import Cartpole
from trainer.simulators.simulator import TaskRequest

BOX = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float32)


class Remembering(gymnasium.Env[np.ndarray, np.ndarray]):
    """Its next observation depends on attributes of many types; `gain` is a setting."""

    observation_space = BOX
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain
        self.position = np.zeros(2, np.float32)
        self.first = self.position[:1]  # a view, as of a simulator's buffers
        self.recent: deque[float] = deque(maxlen=3)
        self.goals: dict[str, Any] = {"next": None}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.position[:] = self.np_random.normal(size=2)
        self.goals["next"] = (float(self.np_random.normal()), np.float32(1.5))
        self.age = 0
        return self._observe(), {}

    def step(self, action: np.ndarray) -> Any:
        self.age += 1
        self.recent.append(float(action[0]))
        self.position += self.np_random.normal(size=2).astype(np.float32) + sum(self.recent)
        return self._observe(), self.gain * self.goals["next"][0], False, self.age == 25, {}

    def _observe(self) -> np.ndarray:
        return np.array([*self.position, self.first[0] * self.goals["next"][1]], np.float32)


class Secretive(Remembering):
    """Remembers something that only its own class understands."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = iter(range(10))


@pytest.fixture(autouse=True)
def registered():
    for kind in (Remembering, Secretive):
        gymnasium.register(f"{kind.__name__}-v0", entry_point=kind)
    yield
    for kind in (Remembering, Secretive):
        gymnasium.registry.pop(f"{kind.__name__}-v0")


def made(task_name: str, *, seed: int = 0, **how: Any) -> Any:
    request = TaskRequest(
        task_name=task_name, num_envs=2, seed=seed, device="cpu", warn=lambda message: None, **how
    )
    return simulators.make(request)


def saved_and_loaded(state: Any) -> Any:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@pytest.mark.parametrize(
    "task_name",
    ["HalfCheetah-v5", "Ant-v5", "Humanoid-v5", "Pusher-v5", "Pendulum-v1", "Remembering-v0"],
)
def test_an_environment_goes_on_within_its_episode_bit_for_bit(task_name: str):
    first, second = made(task_name), made(task_name, seed=9)
    for _ in range(37):
        first.env.step(first.random_actions())

    second.load_state_dict(saved_and_loaded(first.state_dict()), same_envs=True)

    assert first.resumes_within_episodes
    for _ in range(60):
        actions = first.random_actions()
        ours, theirs = first.env.step(actions), second.env.step(actions)
        assert torch.equal(ours[0]["policy"], theirs[0]["policy"])
        assert torch.equal(ours[1], theirs[1])
        assert torch.equal(ours[2], theirs[2])


def test_settings_are_those_of_the_resumed_training_not_of_the_checkpoint():
    first = made("Remembering-v0")
    first.env.step(torch.zeros(2, 1))

    second = made("Remembering-v0", reward_weights={"gain": -4.0})
    second.load_state_dict(saved_and_loaded(first.state_dict()), same_envs=True)

    _, rewards, _, _ = first.env.step(torch.zeros(2, 1))
    _, others, _, _ = second.env.step(torch.zeros(2, 1))
    assert torch.equal(others, -4.0 * rewards)


def test_an_environment_that_cannot_be_told_starts_new_episodes_with_the_generator_of_then():
    first, second = made("Secretive-v0"), made("Secretive-v0", seed=9)
    for _ in range(10):
        first.env.step(torch.zeros(2, 1))

    second.load_state_dict(saved_and_loaded(first.state_dict()), same_envs=True)

    assert not first.resumes_within_episodes
    for ours, theirs in zip(first.env.vector_env.envs, second.env.vector_env.envs, strict=True):
        assert ours.unwrapped.np_random.normal() == theirs.unwrapped.np_random.normal()
        assert theirs.unwrapped.age == 0


def test_a_cartpole_of_a_gpu_goes_on_on_a_cpu():
    request = TaskRequest(task_name="Canard-Cartpole-v0", num_envs=2, seed=0, device="cpu")
    first, second = Cartpole(request), Cartpole(request)
    first.env.step(first.random_actions())
    state = first.state_dict()
    state["generator"] = torch.zeros(16, dtype=torch.uint8)  # as long as CUDA's is

    second.load_state_dict(state, same_envs=True)

    assert torch.equal(second.env.state, first.env.state)
