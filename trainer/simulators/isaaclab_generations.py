"""The two generations of Isaac Lab, behind one interface.

They differ in when the simulator starts: 2.3.2 wants its app launched before any environment is imported, 3.0
tells from the task's configuration whether it needs an app at all. Nothing here runs at import.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import gymnasium as gym

from trainer.errors import ConfigurationError

ENV_CFG = "env_cfg_entry_point"
AGENT_CFG = "rsl_rl_cfg_entry_point"
NEWTON = "newton_mjwarp"

PHYSICS_VARIABLE = "CANARD_ISAACLAB_PHYSICS"
"""Names the physics of Isaac Lab 3, such as newton_mjwarp, where the task's own choice is not wanted."""

FRAME_SIZE = (640, 480)
FILMED_ENVS = 16


class Generation(Protocol):
    """What differs between versions of Isaac Lab."""

    def configs(self, task_name: str) -> tuple[Any, dict[str, Any]]:
        """The task's environment configuration, an object to be changed, and its agent configuration."""

    def make(self, task_name: str, env_cfg: Any) -> Any:
        """The Gym environment, seeded and placed as its configuration says."""

    def frame(self, env: Any) -> Any:
        """One picture of the environment: uint8, shape (height, width, 3); None where none can be drawn."""


class IsaacLab3:
    """Isaac Lab 3: Isaac Sim for a task that needs it, Newton where Isaac Sim is missing."""

    def __init__(self, *, device: str, video: bool, physics: str | None, warn: Callable[[str], None]) -> None:
        self._device = device
        self._video = video
        self._physics = physics
        self._warn = warn
        self._runtime: Any = None

    def configs(self, task_name: str) -> tuple[Any, dict[str, Any]]:
        from isaaclab.utils import to_dict

        env_cfg, agent_cfg = self._resolved(task_name)
        return env_cfg, agent_cfg if isinstance(agent_cfg, dict) else to_dict(agent_cfg)

    def _resolved(self, task_name: str) -> tuple[Any, Any]:
        from isaaclab.app import validate_launch
        from isaaclab_physx.app import KitLauncher
        from isaaclab_tasks.utils import resolve_task_config

        if self._physics:
            return self._with_physics(task_name, self._physics)
        _, needs = validate_launch(resolve_task_config(task_name, None, overrides=[])[0], {})
        if not needs or KitLauncher.is_available():
            own: tuple[Any, Any] = resolve_task_config(task_name, AGENT_CFG, overrides=[])
            return own
        env_cfg, agent_cfg = self._with_physics(task_name, NEWTON)
        _, still_needs = validate_launch(env_cfg, {})
        if still_needs:
            raise ConfigurationError(
                f"task_name: {task_name} needs {still_needs[0]}, and Isaac Sim is not installed here"
            )
        self._warn(
            f"{task_name} asks for {needs[0]}; Isaac Sim is not installed here, so it runs on {NEWTON}"
        )
        return env_cfg, agent_cfg

    def _with_physics(self, task_name: str, physics: str) -> tuple[Any, Any]:
        """The task with its own settings for this physics, else with the physics' defaults."""
        from isaaclab.app import validate_launch
        from isaaclab.physics import PhysicsCfg
        from isaaclab_tasks.utils import resolve_task_config
        from isaaclab_tasks.utils.preset_cli import enumerate_task_presets
        from isaaclab_tasks.utils.preset_target import PresetTarget

        if physics in (enumerate_task_presets(task_name) or {}).get(PresetTarget.PHYSICS, ()):
            chosen: tuple[Any, Any] = resolve_task_config(
                task_name, AGENT_CFG, overrides=[f"physics={physics}"]
            )
            return chosen
        env_cfg, agent_cfg = resolve_task_config(task_name, AGENT_CFG, overrides=[])
        env_cfg.sim.physics = PhysicsCfg()
        try:
            validate_launch(env_cfg, {"physics": physics})
        except ValueError as error:
            raise ConfigurationError(f"{PHYSICS_VARIABLE}={physics}: {error}") from error
        return env_cfg, agent_cfg

    def make(self, task_name: str, env_cfg: Any) -> Any:
        from isaaclab.app import launch_simulation

        if self._video:
            self._add_camera(env_cfg)
        # Never left: with Isaac Sim, leaving ends the process with a code of its own.
        arguments = {
            "device": self._device,
            "headless": True,
            "distributed": _is_one_gpu_of_several(self._device),
        }
        self._runtime = launch_simulation(env_cfg, arguments)
        self._runtime.__enter__()
        try:
            return made(task_name, env_cfg)
        except Exception as error:
            if not self._video:
                raise
            self._video = False
            reason = str(error).partition("\n")[0]
            self._warn(f"video_enabled: nothing can be drawn here ({type(error).__name__}: {reason})")
        env_cfg.sim.visualizer_cfgs = []
        return made(task_name, env_cfg)

    def _add_camera(self, env_cfg: Any) -> None:
        from isaaclab_newton.physics import NewtonCfg

        size = {"window_width": FRAME_SIZE[0], "window_height": FRAME_SIZE[1]}
        if isinstance(env_cfg.sim.physics, NewtonCfg):
            from isaaclab_visualizers.newton import NewtonGLVisualizerCfg as VisualizerCfg

            # Without this only shapes that collide are drawn.
            env_cfg.sim.physics.load_visual_shapes = True
        else:
            from isaaclab_visualizers.kit import KitVisualizerCfg as VisualizerCfg
        env_cfg.sim.visualizer_cfgs = [VisualizerCfg(headless=True, max_visible_envs=FILMED_ENVS, **size)]

    def frame(self, env: Any) -> Any:
        if not self._video:
            return None
        simulation = env.unwrapped.sim
        if not simulation.is_rendering:
            simulation.forward()
        return simulation.visualizers[0].render_rgb_array()


class IsaacLab2:
    """Isaac Lab 2.3.2, inside the Isaac Sim that `launch_isaac_sim` started."""

    def __init__(self, *, app: object, video: bool) -> None:
        self._app = app
        self._video = video

    def configs(self, task_name: str) -> tuple[Any, dict[str, Any]]:
        from isaaclab_tasks.utils import load_cfg_from_registry

        env_cfg = load_cfg_from_registry(task_name, ENV_CFG)
        agent_cfg = load_cfg_from_registry(task_name, AGENT_CFG)
        return env_cfg, agent_cfg if isinstance(agent_cfg, dict) else agent_cfg.to_dict()

    def make(self, task_name: str, env_cfg: Any) -> Any:
        return made(task_name, env_cfg, render_mode="rgb_array" if self._video else None)

    def frame(self, env: Any) -> Any:
        return env.render() if self._video else None


def launch_isaac_sim(*, device: str, video: bool) -> object:
    """Start Isaac Sim for Isaac Lab 2; the returned launcher must live as long as the simulator."""
    with _no_arguments():
        from isaaclab.app import AppLauncher

        distributed = _is_one_gpu_of_several(device)
        launcher: object = AppLauncher(
            {"headless": True, "enable_cameras": video, "device": device, "distributed": distributed}
        )
    return launcher


def _is_one_gpu_of_several(device: str) -> bool:
    """Isaac Lab then takes the GPU of LOCAL_RANK, as we do, and its share of the CPU's threads."""
    return device != "cpu" and int(os.environ.get("WORLD_SIZE", "1")) > 1


def made(task_name: str, env_cfg: Any, **arguments: Any) -> Any:
    """The Gym environment, without the time limit wrapper, whose truncations are no tensors."""
    env = gym.make(task_name, cfg=env_cfg, max_episode_steps=-1, disable_env_checker=True, **arguments)
    if hasattr(env_cfg, "possible_agents"):
        from isaaclab.envs import multi_agent_to_single_agent

        return multi_agent_to_single_agent(env)
    return env


@contextmanager
def _no_arguments() -> Iterator[None]:
    """Isaac Sim reads sys.argv and takes arguments that are ours for its own."""
    arguments, sys.argv = sys.argv, sys.argv[:1]
    try:
        yield
    finally:
        sys.argv = arguments
