"""Isaac Lab tasks: version 3 with Newton or with Isaac Sim, and version 2.3.2 with Isaac Sim.

Tasks, their agents and their physics come from Isaac Lab's registry, and its own rsl-rl wrapper drives the
environment. Simulated bodies are not restored on a resume: episodes start anew; the counters that curricula
depend on go on.
"""

import importlib
import importlib.metadata
import importlib.util
import os
from typing import Any

import torch
from rsl_rl.env import VecEnv

from trainer.errors import ConfigurationError
from trainer.simulators import curricula
from trainer.simulators.isaaclab_agent import train_cfg
from trainer.simulators.isaaclab_cfg import set_parameter, set_reward_weights
from trainer.simulators.isaaclab_generations import (
    AGENT_CFG,
    PHYSICS_VARIABLE,
    Generation,
    IsaacLab2,
    IsaacLab3,
)
from trainer.simulators.simulator import TaskRequest

TASK_GROUP = "isaaclab.tasks"
"""Entry points under which installed projects name the modules that register their tasks."""


class IsaacLabSimulator:
    """Implements Simulator."""

    name = "isaaclab"
    start_at_random_episode_lengths = True
    resumes_within_episodes = False

    def __init__(self, request: TaskRequest, generation: Generation) -> None:
        task_name = request.task_name.rpartition(":")[2]
        _refuse_other_agents(task_name)
        env_cfg, agent_cfg = generation.configs(task_name)
        self.agent_cfg = train_cfg(agent_cfg, task_name)
        set_reward_weights(env_cfg, request.reward_weights)
        for path, value in request.physics_params.items():
            set_parameter(env_cfg, path, value)
        env_cfg.scene.num_envs = request.num_envs
        env_cfg.sim.device = request.device
        env_cfg.seed = request.seed

        self._generation = generation
        self._env = generation.make(task_name, env_cfg)
        self.env = _wrapped(self._env, self.agent_cfg.get("clip_actions"))
        self.step_dt_s = float(self._task.step_dt)
        self._action_generator = torch.Generator().manual_seed(request.seed)

    @property
    def _task(self) -> Any:
        return self._env.unwrapped

    def state_dict(self) -> dict[str, Any]:
        """The counters of curricula: steps so far, and each environment's terrain level."""
        return curricula.state_dict(self._task)

    def load_state_dict(self, state: dict[str, Any], *, same_envs: bool) -> None:
        curricula.load_state_dict(self._task, state, reset=self.env.reset, same_envs=same_envs)

    def random_actions(self) -> torch.Tensor:
        """In [-1, 1], the range that Isaac Lab's tasks scale actions from."""
        unit = torch.rand(self.env.num_envs, self.env.num_actions, generator=self._action_generator)
        return (2 * unit - 1).to(self.env.device)

    def count_collisions(self) -> int:
        """Isaac Lab counts contacts only for a task with contact sensors, each in its own way; none here."""
        return 0

    def frame(self) -> Any:
        """One picture: uint8, shape (height, width, 3); None without `video` or where none can be drawn."""
        return self._generation.frame(self._env)

    def close(self) -> None:
        """The environment only: leaving Isaac Sim's app ends the process."""
        self._env.close()


def make(request: TaskRequest) -> IsaacLabSimulator:
    return IsaacLabSimulator(request, _generation(request))


def register_tasks() -> None:
    """Register Isaac Lab's own tasks and those of the projects that are installed beside it."""
    if importlib.util.find_spec("isaaclab_tasks") is not None:
        importlib.import_module("isaaclab_tasks")
    for entry_point in importlib.metadata.entry_points(group=TASK_GROUP):
        try:
            entry_point.load()
        except Exception as error:
            raise ConfigurationError(
                f"importing {entry_point.value} failed: {type(error).__name__}: {error}"
            ) from error


def _generation(request: TaskRequest) -> Generation:
    try:
        version = importlib.metadata.version("isaaclab")
    except importlib.metadata.PackageNotFoundError:
        raise ConfigurationError(
            f"task_name: {request.task_name} is an Isaac Lab task, and this environment has no Isaac Lab;"
            " start the platform with --trainer-python of an environment that has it"
        ) from None
    if version.startswith("2."):
        return IsaacLab2(app=request.app, video=request.video)
    physics = os.environ.get(PHYSICS_VARIABLE) or None
    return IsaacLab3(device=request.device, video=request.video, physics=physics, warn=request.warn)


def _refuse_other_agents(task_name: str) -> None:
    import gymnasium

    arguments = gymnasium.spec(task_name).kwargs
    if AGENT_CFG not in arguments:
        agents = sorted(
            name for name in arguments if name.endswith("cfg_entry_point") and name != "env_cfg_entry_point"
        )
        raise ConfigurationError(
            f"task_name: {task_name} registers no {AGENT_CFG}, which PPO is set up from; it has"
            f" {', '.join(agents) or 'no agent at all'}"
        )


def _wrapped(env: Any, clip_actions: float | None) -> VecEnv:
    from isaaclab_rl.rsl_rl import RslRlVecEnvWrapper

    return RslRlVecEnvWrapper(env, clip_actions=clip_actions)
