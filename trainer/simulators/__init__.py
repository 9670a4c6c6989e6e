"""Which simulator a task belongs to. Nothing heavy is imported until one is made."""

import difflib
import importlib
from typing import TYPE_CHECKING

from trainer.errors import ConfigurationError

if TYPE_CHECKING:
    from trainer.simulators.simulator import Simulator, TaskRequest

CARTPOLE_TASK = "Canard-Cartpole-v0"

MODULES = {
    "cartpole": "trainer.simulators.cartpole",
    "gymnasium": "trainer.simulators.gymnasium",
}


def simulator_of(task_name: str) -> str:
    """Name of the simulator that has this task.

    Raises:
        ConfigurationError: no simulator of this environment has it; near IDs are named.
    """
    if task_name == CARTPOLE_TASK:
        return "cartpole"
    known = _registered_ids()
    if task_name in known or _registers_itself(task_name):
        return "gymnasium"
    near = difflib.get_close_matches(task_name, [*known, CARTPOLE_TASK], n=3, cutoff=0.6)
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
    import gymnasium

    return list(gymnasium.registry)


def _registers_itself(task_name: str) -> bool:
    """`module:ID`: gymnasium imports the module, and the ID is there or not."""
    module, colon, task_id = task_name.partition(":")
    if not colon:
        return False
    from trainer.modules import import_modules

    import_modules([module])
    return task_id in _registered_ids()
