"""State of Gymnasium's MuJoCo tasks: what the next step depends on, and what touches what."""

from collections.abc import Sequence
from typing import Any, Self

import gymnasium
import numpy as np
import torch
from gymnasium.wrappers import TimeLimit


class MujocoState:
    """Reads and writes the full integration state of several MuJoCo environments."""

    def __init__(self, envs: Sequence[gymnasium.Env[Any, Any]]) -> None:
        self._envs = envs
        self._touching = [self._contacts(env) for env in envs]

    @classmethod
    def of(cls, envs: Sequence[gymnasium.Env[Any, Any]]) -> Self | None:
        """None where an environment is none of MuJoCo's."""
        if all(hasattr(env.unwrapped, "model") and hasattr(env.unwrapped, "data") for env in envs):
            return cls(envs)
        return None

    def state_dict(self) -> dict[str, Any]:
        return {
            "physics": [torch.from_numpy(self._physics(env)) for env in self._envs],
            "generators": [_plain(env.unwrapped.np_random.bit_generator.state) for env in self._envs],
            "elapsed_steps": [getattr(_time_limit(env), "_elapsed_steps", None) for env in self._envs],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        import mujoco

        for env, physics, generator, elapsed in zip(
            self._envs, state["physics"], state["generators"], state["elapsed_steps"], strict=True
        ):
            task: Any = env.unwrapped
            mujoco.mj_setState(task.model, task.data, physics.numpy(), mujoco.mjtState.mjSTATE_INTEGRATION)
            task.np_random.bit_generator.state = generator
            limit: Any = _time_limit(env)
            if limit is not None:
                limit._elapsed_steps = elapsed
        self._touching = [self._contacts(env) for env in self._envs]

    def count_new_contacts(self) -> int:
        """Pairs of geoms in contact now that were not at the last call, over all environments."""
        before, self._touching = self._touching, [self._contacts(env) for env in self._envs]
        return sum(len(now - then) for now, then in zip(self._touching, before, strict=True))

    @staticmethod
    def _physics(env: gymnasium.Env[Any, Any]) -> np.ndarray:
        import mujoco

        task: Any = env.unwrapped
        kind = mujoco.mjtState.mjSTATE_INTEGRATION
        state = np.empty(mujoco.mj_stateSize(task.model, kind))
        mujoco.mj_getState(task.model, task.data, state, kind)
        return state

    @staticmethod
    def _contacts(env: gymnasium.Env[Any, Any]) -> set[tuple[int, int]]:
        data: Any = env.unwrapped.data
        return {(int(contact.geom1), int(contact.geom2)) for contact in data.contact[: data.ncon]}


def _time_limit(env: gymnasium.Env[Any, Any]) -> TimeLimit[Any, Any] | None:
    """The wrapper that ends episodes by time, however deep it lies."""
    inner: Any = env
    while isinstance(inner, gymnasium.Wrapper):
        if isinstance(inner, TimeLimit):
            return inner
        inner = inner.env
    return None


def _plain(state: Any) -> Any:
    """numpy's generator state without numpy types."""
    if isinstance(state, dict):
        return {key: _plain(value) for key, value in state.items()}
    return state if isinstance(state, str) else int(state)
