"""Any Gymnasium task with flat observations and continuous actions, vectorised in this process.

A policy action in [-1, 1] spans the task's action range; a dimension without bounds takes it as it is.
"""

import inspect
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from rsl_rl.env import VecEnv
from tensordict import TensorDict

from trainer.agent import default_agent_cfg
from trainer.errors import ConfigurationError
from trainer.simulators.attribute_state import (
    AttributeState,
    UnknownStateError,
    generator_state,
    load_generator_state,
)
from trainer.simulators.mujoco_state import MujocoState, tell_warnings
from trainer.simulators.simulator import TaskRequest

UNLIMITED_EPISODE_STEPS = 1_000_000
SAMPLES_PER_ITERATION = 2048
"""Few environments roll out longer, so that an update has this many (PPO on MuJoCo, arXiv:1707.06347)."""
DEFAULT_STEP_S = 0.02
DRAWN = "rgb_array"


class GymnasiumEnv(VecEnv):
    """Observation group `policy`: (num_envs, n)."""

    def __init__(self, vector_env: SyncVectorEnv, request: TaskRequest) -> None:
        self.vector_env = vector_env
        self.num_envs = request.num_envs
        self.device = torch.device(request.device)
        self.num_actions = int(np.prod(vector_env.single_action_space.shape))
        spec = vector_env.envs[0].spec
        self.max_episode_length = (spec.max_episode_steps if spec else None) or UNLIMITED_EPISODE_STEPS
        self.episode_length_buf = torch.zeros(self.num_envs, dtype=torch.long, device=self.device)
        self.cfg = {"task_name": request.task_name}
        observations, _ = vector_env.reset(seed=request.seed)
        self.last_observations: np.ndarray = observations

    def get_observations(self) -> TensorDict:
        flat = np.asarray(self.last_observations, dtype=np.float32).reshape(self.num_envs, -1)
        return TensorDict({"policy": torch.from_numpy(flat).to(self.device)}, batch_size=[self.num_envs])

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        observations, rewards, terminated, truncated, infos = self.vector_env.step(self._in_range(actions))
        self.last_observations = observations
        dones = terminated | truncated
        self.episode_length_buf += 1
        self.episode_length_buf[torch.from_numpy(dones).to(self.device)] = 0
        extras = {"time_outs": self._tensor(truncated & ~terminated), "log": _successes(infos)}
        return self.get_observations(), self._tensor(rewards).float(), self._tensor(dones).long(), extras

    def _in_range(self, actions: torch.Tensor) -> np.ndarray:
        space = self.vector_env.single_action_space
        unit = actions.detach().cpu().numpy().astype(np.float64).reshape(self.num_envs, *space.shape)
        bounded = np.isfinite(space.low) & np.isfinite(space.high)
        low, high = np.where(bounded, space.low, -1.0), np.where(bounded, space.high, 1.0)
        spread = low + (np.clip(unit, -1.0, 1.0) + 1.0) / 2 * (high - low)
        return np.where(bounded, spread, unit).astype(space.dtype)

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.asarray(array)).to(self.device)


class GymnasiumSimulator:
    """Implements Simulator."""

    name = "gymnasium"
    start_at_random_episode_lengths = False

    def __init__(self, request: TaskRequest) -> None:
        tell_warnings(request.warn)
        vector_env = _vector_env(request)
        _refuse_spaces(request.task_name, vector_env)
        self._envs = vector_env.envs
        self._attributes = _attribute_states(self._envs)
        self.env = GymnasiumEnv(vector_env, request)
        self.step_dt_s = float(getattr(vector_env.envs[0].unwrapped, "dt", DEFAULT_STEP_S))
        self.agent_cfg = _agent_cfg(request.num_envs)
        self._action_generator = torch.Generator().manual_seed(request.seed)
        self._mujoco = MujocoState.of(vector_env.envs)

    @property
    def resumes_within_episodes(self) -> bool:
        return self._attributes_now() is not None

    def state_dict(self) -> dict[str, Any]:
        """Whole where all that the environments remember can be told, else their random generators."""
        generators = [generator_state(env) for env in self._envs]
        attributes = self._attributes_now()
        if attributes is None:
            return {"generators": generators}
        return {
            "generators": generators,
            "attributes": attributes,
            "mujoco": self._mujoco.state_dict() if self._mujoco is not None else None,
            "observations": torch.from_numpy(np.array(self.env.last_observations)),
            "episode_length": self.env.episode_length_buf.clone(),
        }

    def load_state_dict(self, state: dict[str, Any], *, same_envs: bool) -> None:
        if not same_envs:
            return
        for env, generator in zip(self._envs, state["generators"], strict=True):
            load_generator_state(env, generator)
        if "attributes" not in state or self._attributes is None:
            return
        for attributes, saved in zip(self._attributes, state["attributes"], strict=True):
            attributes.load_state_dict(saved)
        if self._mujoco is not None:
            self._mujoco.load_state_dict(state["mujoco"])
        self.env.last_observations = state["observations"].numpy()
        self.env.episode_length_buf = state["episode_length"].to(self.env.device)

    def _attributes_now(self) -> list[list[dict[str, Any]]] | None:
        if self._attributes is None:
            return None
        try:
            return [attributes.state_dict() for attributes in self._attributes]
        except UnknownStateError:
            return None

    def random_actions(self) -> torch.Tensor:
        unit = torch.rand(self.env.num_envs, self.env.num_actions, generator=self._action_generator)
        return (2 * unit - 1).to(self.env.device)

    def count_collisions(self) -> int:
        return self._mujoco.count_new_contacts() if self._mujoco is not None else 0

    def frame(self) -> np.ndarray | None:
        """Of environment 0; None where the task does not draw into memory."""
        if self._envs[0].render_mode != DRAWN:
            return None
        picture: Any = self._envs[0].render()
        return picture if isinstance(picture, np.ndarray) else None

    def close(self) -> None:
        self.env.vector_env.close()


def make(request: TaskRequest) -> GymnasiumSimulator:
    return GymnasiumSimulator(request)


def _attribute_states(envs: Sequence["gymnasium.Env[Any, Any]"]) -> list[AttributeState] | None:
    """None where an environment has an attribute that cannot be told; its episodes start anew on a resume."""
    try:
        return [AttributeState(env) for env in envs]
    except UnknownStateError:
        return None


def _vector_env(request: TaskRequest) -> SyncVectorEnv:
    arguments: dict[str, Any] = {**request.physics_params, **request.reward_weights}
    try:
        if arguments:
            _refuse_unknown_arguments(request)
        if request.video and _draws(request.task_name):
            arguments["render_mode"] = DRAWN
        vector_env = gymnasium.make_vec(
            request.task_name,
            num_envs=request.num_envs,
            vectorization_mode="sync",
            vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
            **arguments,
        )
    except ConfigurationError:
        raise
    except Exception as error:
        traceback.print_exc()  # theirs: it says which line of the environment it was
        raise ConfigurationError(
            f"task_name: making {request.task_name} failed: {type(error).__name__}: {error}"
        ) from error
    assert isinstance(vector_env, SyncVectorEnv)  # noqa: S101 - what vectorization_mode asks for
    return vector_env


def _refuse_unknown_arguments(request: TaskRequest) -> None:
    arguments = _arguments(request.task_name)
    numeric = {n for n, v in arguments.items() if isinstance(v, int | float) and not isinstance(v, bool)}
    for field, names, known in (
        ("reward_weights", request.reward_weights, numeric),
        ("parameter", request.physics_params, set(arguments)),
    ):
        for name in names:
            if name not in known:
                kind = "numeric argument" if known is numeric else "argument"
                listed = ", ".join(sorted(known)) or "none"
                raise ConfigurationError(
                    f"{field}: {request.task_name} has no {kind} {name!r}; it has: {listed}"
                )


def _draws(task_name: str) -> bool:
    """Whether the task draws into memory, as its class says; one that does not is made without."""
    return DRAWN in (getattr(_constructor(task_name), "metadata", None) or {}).get("render_modes", ())


def _constructor(task_name: str) -> Any:
    creator = gymnasium.spec(task_name).entry_point
    if isinstance(creator, str):
        return gymnasium.envs.registration.load_env_creator(creator)
    return creator


def _arguments(task_name: str) -> dict[str, Any]:
    """Arguments of the environment's constructor, with what they are when nothing is said."""
    constructor = _constructor(task_name)
    parameters: Mapping[str, inspect.Parameter] = (
        inspect.signature(constructor).parameters if constructor else {}
    )
    named = {
        name: parameter.default
        for name, parameter in parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    return {**named, **gymnasium.spec(task_name).kwargs}


def _refuse_spaces(task_name: str, vector_env: SyncVectorEnv) -> None:
    for kind, space in (
        ("observations", vector_env.single_observation_space),
        ("actions", vector_env.single_action_space),
    ):
        if not isinstance(space, gymnasium.spaces.Box):
            vector_env.close()
            raise ConfigurationError(
                f"task_name: {task_name} has {type(space).__name__} {kind}; only Box is trained here. "
                "Wrap the environment where it is registered (gymnasium.wrappers)"
            )


def _successes(infos: Mapping[str, Any]) -> dict[str, float]:
    """Share of the episodes that ended in this step with a success, where the task says so."""
    final = infos.get("final_info")
    if not isinstance(final, Mapping):
        return {}
    for key in ("is_success", "success"):
        if key in final:
            mask = np.asarray(infos.get("_final_info", np.ones_like(final[key], dtype=bool)))
            return {"Episode/success": float(np.asarray(final[key], dtype=float)[mask].mean())}
    return {}


def _agent_cfg(num_envs: int) -> dict[str, Any]:
    num_steps = max(24, SAMPLES_PER_ITERATION // num_envs)
    cfg = default_agent_cfg(num_steps_per_env=num_steps, hidden_dims=[128, 128], obs_normalization=True)
    cfg["algorithm"]["entropy_coef"] = 0.0
    return cfg
