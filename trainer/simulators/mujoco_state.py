"""Physics of Gymnasium's MuJoCo tasks: what the next step depends on, and what touches what."""

from collections.abc import Callable, Sequence
from typing import Any, Self

import gymnasium
import numpy as np
import torch

DERIVED = (
    "xpos",
    "xquat",
    "xmat",
    "xipos",
    "ximat",
    "xanchor",
    "xaxis",
    "geom_xpos",
    "geom_xmat",
    "site_xpos",
    "site_xmat",
    "subtree_com",
    "subtree_linvel",
    "subtree_angmom",
    "cinert",
    "cvel",
    "cacc",
    "cfrc_int",
    "cfrc_ext",
    "ten_length",
    "ten_velocity",
    "actuator_length",
    "actuator_velocity",
    "actuator_force",
    "qfrc_passive",
    "qfrc_bias",
    "qfrc_actuator",
    "qfrc_constraint",
    "sensordata",
)
"""Arrays of MjData that a step leaves behind for the task to read; MuJoCo's state does not hold them.

They lag the state by one sub-step, so that computing them anew would give others: Ant-v5 and Humanoid-v5
measure how far they came from the body positions of the step before.
"""


class MujocoState:
    """Reads and writes the physics of several MuJoCo environments."""

    def __init__(self, envs: Sequence["gymnasium.Env[Any, Any]"]) -> None:
        self._envs = envs
        self._touching = [self._contacts(env) for env in envs]

    @classmethod
    def of(cls, envs: Sequence["gymnasium.Env[Any, Any]"]) -> Self | None:
        """None where an environment is none of MuJoCo's."""
        if all(hasattr(env.unwrapped, "model") and hasattr(env.unwrapped, "data") for env in envs):
            return cls(envs)
        return None

    def state_dict(self) -> dict[str, Any]:
        return {
            "physics": [torch.from_numpy(self._physics(env)) for env in self._envs],
            "derived": [self._derived(env) for env in self._envs],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        import mujoco

        for env, physics, derived in zip(self._envs, state["physics"], state["derived"], strict=True):
            task: Any = env.unwrapped
            mujoco.mj_setState(task.model, task.data, physics.numpy(), mujoco.mjtState.mjSTATE_INTEGRATION)
            mujoco.mj_forward(task.model, task.data)  # contacts, which count_new_contacts compares with
            mujoco.mj_setState(task.model, task.data, physics.numpy(), mujoco.mjtState.mjSTATE_INTEGRATION)
            for name, values in derived.items():
                getattr(task.data, name)[...] = values.numpy()
        self._touching = [self._contacts(env) for env in self._envs]

    def count_new_contacts(self) -> int:
        """Pairs of geoms in contact now that were not at the last call, over all environments."""
        before, self._touching = self._touching, [self._contacts(env) for env in self._envs]
        return sum(len(now - then) for now, then in zip(self._touching, before, strict=True))

    @staticmethod
    def _physics(env: "gymnasium.Env[Any, Any]") -> np.ndarray:
        import mujoco

        task: Any = env.unwrapped
        kind = mujoco.mjtState.mjSTATE_INTEGRATION
        state = np.empty(mujoco.mj_stateSize(task.model, kind))
        mujoco.mj_getState(task.model, task.data, state, kind)
        return state

    @staticmethod
    def _derived(env: "gymnasium.Env[Any, Any]") -> dict[str, torch.Tensor]:
        data: Any = env.unwrapped.data
        arrays = {name: getattr(data, name, None) for name in DERIVED}
        return {n: torch.from_numpy(np.array(a)) for n, a in arrays.items() if a is not None and a.size}

    @staticmethod
    def _contacts(env: "gymnasium.Env[Any, Any]") -> set[tuple[int, int]]:
        data: Any = env.unwrapped.data
        return {(int(contact.geom1), int(contact.geom2)) for contact in data.contact[: data.ncon]}


def tell_warnings(warn: Callable[[str], None]) -> None:
    """Let MuJoCo tell us its warnings, each text once, instead of a MUJOCO_LOG.TXT in the current folder.

    Nothing happens where mujoco is not installed.
    """
    try:
        import mujoco
    except ModuleNotFoundError as error:
        if error.name != "mujoco":
            raise
        return
    said: set[str] = set()

    def tell(message: str) -> None:
        if message not in said:
            said.add(message)
            warn(f"MuJoCo: {message.strip()}")

    mujoco.set_mju_user_warning(tell)
