"""mjlab tasks: Isaac Lab's manager API on MuJoCo-Warp, on a GPU or, slowly, on a CPU.

Tasks and their agents come from mjlab's registry, and its own rsl-rl wrapper drives the environment. Bodies
are not restored on a resume: episodes start anew; the counter that curricula depend on goes on.
"""

import dataclasses
import importlib
import inspect
from typing import Any

import torch

from trainer.simulators.isaaclab_agent import train_cfg
from trainer.simulators.isaaclab_cfg import set_parameter, set_reward_weights
from trainer.simulators.simulator import TaskRequest


class MjlabSimulator:
    """Implements Simulator."""

    name = "mjlab"
    start_at_random_episode_lengths = True
    resumes_within_episodes = False

    def __init__(self, request: TaskRequest) -> None:
        from mjlab.envs import ManagerBasedRlEnv
        from mjlab.rl import RslRlVecEnvWrapper
        from mjlab.tasks.registry import load_env_cfg, load_rl_cfg

        env_cfg = load_env_cfg(request.task_name)
        self.agent_cfg = _agent_cfg(dataclasses.asdict(load_rl_cfg(request.task_name)), request.task_name)
        set_reward_weights(env_cfg, request.reward_weights)
        for path, value in request.physics_params.items():
            set_parameter(env_cfg, path, value)
        env_cfg.scene.num_envs = request.num_envs
        env_cfg.seed = request.seed
        render_mode = "rgb_array" if request.video else None
        self._task = ManagerBasedRlEnv(cfg=env_cfg, device=request.device, render_mode=render_mode)
        self.env = RslRlVecEnvWrapper(self._task, clip_actions=self.agent_cfg.get("clip_actions"))
        self.step_dt_s = float(self._task.step_dt)
        self._action_generator = torch.Generator().manual_seed(request.seed)

    def state_dict(self) -> dict[str, Any]:
        return {"common_step_counter": int(self._task.common_step_counter)}

    def load_state_dict(self, state: dict[str, Any], *, same_envs: bool) -> None:
        self._task.common_step_counter = state["common_step_counter"]

    def random_actions(self) -> torch.Tensor:
        """In [-1, 1], which mjlab's action terms scale."""
        unit = torch.rand(self.env.num_envs, self.env.num_actions, generator=self._action_generator)
        return (2 * unit - 1).to(self.env.device)

    def count_collisions(self) -> int:
        """Contacts are counted by a task's own sensors, each in its own way; none here."""
        return 0

    def frame(self) -> Any:
        """One picture: uint8, shape (height, width, 3); None without `video`."""
        return self._task.render()

    def close(self) -> None:
        self._task.close()


def make(request: TaskRequest) -> MjlabSimulator:
    return MjlabSimulator(request)


def _agent_cfg(agent: dict[str, Any], task_name: str) -> dict[str, Any]:
    networks = {name: _model(agent[name]) for name in ("actor", "critic")}
    # mjlab's runners subclass OnPolicyRunner only to export policies, which is done elsewhere here.
    return train_cfg({**agent, **networks, "class_name": "OnPolicyRunner"}, task_name)


def _model(settings: dict[str, Any]) -> dict[str, Any]:
    """mjlab writes the settings of every kind of network; rsl-rl's classes take their own."""
    models = importlib.import_module("rsl_rl.models")
    taken = inspect.signature(getattr(models, settings["class_name"]).__init__).parameters
    kept = {name: value for name, value in settings.items() if name in taken and value is not None}
    return {"class_name": settings["class_name"], **kept}
