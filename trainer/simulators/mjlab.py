"""mjlab tasks: Isaac Lab's manager API on MuJoCo-Warp, on a GPU or, slowly, on a CPU.

Tasks and their agents come from mjlab's registry, and its own rsl-rl wrapper drives the environment. Bodies
are not restored on a resume: episodes start anew, at the difficulty that curricula had reached.
"""

import dataclasses
from typing import Any

import torch

from trainer.errors import ConfigurationError
from trainer.simulators import curricula
from trainer.simulators.isaaclab_agent import RECURRENT_SETTINGS, train_cfg
from trainer.simulators.isaaclab_cfg import set_parameter, set_reward_weights
from trainer.simulators.simulator import TaskRequest

QUICKLY_DRAWN = {"enable_shadows": False, "enable_reflections": False, "max_extra_envs": 0}
"""Where there is no GPU: with what mjlab's tasks ask for, a picture takes seconds."""


class MjlabSimulator:
    """Implements Simulator."""

    name = "mjlab"
    start_at_random_episode_lengths = True
    resumes_within_episodes = False

    def __init__(self, request: TaskRequest) -> None:
        from mjlab.envs import ManagerBasedRlEnv
        from mjlab.rl import RslRlVecEnvWrapper
        from mjlab.tasks.registry import load_env_cfg

        env_cfg = load_env_cfg(request.task_name)
        self.agent_cfg = agent_cfg_of_task(request.task_name)
        set_reward_weights(env_cfg, request.reward_weights)
        for path, value in request.physics_params.items():
            set_parameter(env_cfg, path, value)
        env_cfg.scene.num_envs = request.num_envs
        env_cfg.seed = request.seed
        _refuse_missing_motion(env_cfg, request.task_name)
        self._task = ManagerBasedRlEnv(cfg=env_cfg, device=request.device)
        self.env = RslRlVecEnvWrapper(self._task, clip_actions=self.agent_cfg.get("clip_actions"))
        self.step_dt_s = float(self._task.step_dt)
        self._video = request.video
        self._renderer: Any = None
        self._action_generator = torch.Generator().manual_seed(request.seed)

    def state_dict(self) -> dict[str, Any]:
        """The counters of curricula: steps so far, and each environment's terrain level."""
        return curricula.state_dict(self._task)

    def load_state_dict(self, state: dict[str, Any], *, same_envs: bool) -> None:
        curricula.load_state_dict(self._task, state, reset=self.env.reset, same_envs=same_envs)

    def random_actions(self) -> torch.Tensor:
        """In [-1, 1], which mjlab's action terms scale."""
        unit = torch.rand(self.env.num_envs, self.env.num_actions, generator=self._action_generator)
        return (2 * unit - 1).to(self.env.device)

    def count_collisions(self) -> int:
        """Contacts are counted by a task's own sensors, each in its own way; none here."""
        return 0

    def frame(self) -> Any:
        """One picture: uint8, shape (height, width, 3); None without `video`."""
        if not self._video:
            return None
        if self._renderer is None:
            self._renderer = _renderer(self._task)
        self._renderer.update(self._task.sim.data, debug_vis_callback=self._task.update_visualizers)
        return self._renderer.render()

    def close(self) -> None:
        if self._renderer is not None:
            self._renderer.close()
        self._task.close()


def make(request: TaskRequest) -> MjlabSimulator:
    return MjlabSimulator(request)


def _refuse_missing_motion(env_cfg: Any, task_name: str) -> None:
    """mjlab registers its motion tracking without a motion: that is the user's."""
    for name, command in env_cfg.commands.items():
        if getattr(command, "motion_file", None) == "":
            raise ConfigurationError(
                f"task_name: {task_name} has no motion to track; register a task of your own (code_url) with"
                f" its configuration and commands[{name!r}].motion_file set"
            )


def _renderer(task: Any) -> Any:
    """As the task itself would make it, but not before a picture is wanted: not every machine can draw."""
    from mjlab.viewer.offscreen_renderer import OffscreenRenderer

    viewer = task.cfg.viewer
    if task.device == "cpu":
        viewer = dataclasses.replace(viewer, **QUICKLY_DRAWN)
    renderer = OffscreenRenderer(
        model=task.sim.mj_model,
        cfg=viewer,
        scene=task.scene,
        sim_model=task.sim.model,
        expanded_fields=task.sim.expanded_fields,
    )
    renderer.initialize()
    return renderer


def agent_cfg_of_task(task_name: str) -> dict[str, Any]:
    """The agent that mjlab's registry has for the task, in rsl-rl's configuration of 5.x."""
    from mjlab.tasks.registry import load_rl_cfg

    agent = dataclasses.asdict(load_rl_cfg(task_name))
    networks = {name: _model(agent[name]) for name in agent.keys() & {"actor", "critic"}}
    return train_cfg({**agent, **networks}, task_name)


def _model(settings: dict[str, Any]) -> dict[str, Any]:
    """mjlab writes the settings of every kind of network down, and drops at the end what is not set."""
    unset = {name for name, value in settings.items() if value is None}
    if "rnn_type" in unset:
        unset |= {*RECURRENT_SETTINGS}
    return {name: value for name, value in settings.items() if name not in unset}
