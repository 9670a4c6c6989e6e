"""Which simulator a task belongs to. Nothing heavy is imported until one is made."""

import difflib
import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trainer.errors import ConfigurationError

if TYPE_CHECKING:
    from trainer.simulators.simulator import Simulator, TaskRequest

CARTPOLE_TASK = "Canard-Cartpole-v0"

MODULES = {
    "cartpole": "trainer.simulators.cartpole",
    "gymnasium": "trainer.simulators.gymnasium",
    "isaaclab": "trainer.simulators.isaaclab",
    "mjlab": "trainer.simulators.mjlab",
}

ISAAC_LAB_KEY = "env_cfg_entry_point"
"""What Isaac Lab's tasks have in their Gym registration, and no other."""


def start_app(task_name: str, *, device: Callable[[], str], video: bool) -> object:
    """Start what must run before the user's packages may be imported; keep the result alive.

    That is Isaac Sim, which Isaac Lab 2 runs inside; nothing for any other simulator. `device` is asked only
    then: to know it takes torch, and a wrong task_name should be told without waiting for that.
    """
    if task_name == CARTPOLE_TASK or _isaac_lab_major() != 2 or task_name in _registered_ids():
        return None
    from trainer.simulators.isaaclab_generations import launch_isaac_sim

    return launch_isaac_sim(device=device(), video=video)


def simulator_of(task_name: str) -> str:
    """Name of the simulator that has this task.

    Raises:
        ConfigurationError: no simulator of this environment has it; near IDs are named.
    """
    if task_name == CARTPOLE_TASK:
        return "cartpole"
    if task_name not in _registered_ids() and _isaac_lab_major() is not None:
        from trainer.simulators.isaaclab import register_tasks

        register_tasks()
    if task_name in _registered_ids() or _registers_itself(task_name):
        return "isaaclab" if ISAAC_LAB_KEY in _registered_arguments(task_name) else "gymnasium"
    from trainer.simulators import mjlab_tasks

    if mjlab_tasks.has_task(task_name):
        return "mjlab"
    known, wanted = [*_registered_ids(), *mjlab_tasks.task_ids(), CARTPOLE_TASK], task_name.rpartition(":")[2]
    near = difflib.get_close_matches(wanted, known, n=3, cutoff=0.6)
    hint = f"did you mean {', '.join(near)}?" if near else "is the package that registers it imported?"
    raise ConfigurationError(
        f"task_name: no task {task_name!r} in this environment; {hint}"
        " (a repository's packages are imported by themselves; canard.yaml can name other modules)"
    )


def make_simulator(name: str, request: "TaskRequest") -> "Simulator":
    """Build the task."""
    made: Simulator = importlib.import_module(MODULES[name]).make(request)
    return made


def _registered_ids() -> list[str]:
    if importlib.util.find_spec("gymnasium") is None:  # mjlab does without
        return []
    import gymnasium

    return list(gymnasium.registry)


def _registered_arguments(task_name: str) -> dict[str, Any]:
    import gymnasium

    return dict(gymnasium.registry[task_name.rpartition(":")[2]].kwargs)


def _isaac_lab_major() -> int | None:
    """2 or 3; None where Isaac Lab is not installed."""
    try:
        return int(importlib.metadata.version("isaaclab").split(".")[0])
    except importlib.metadata.PackageNotFoundError:
        return None


def _registers_itself(task_name: str) -> bool:
    """`module:ID`: gymnasium imports the module, and the ID is there or not."""
    module, colon, task_id = task_name.partition(":")
    if not colon:
        return False
    from trainer.modules import import_modules

    import_modules([module])
    return task_id in _registered_ids()
