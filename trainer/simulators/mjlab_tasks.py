"""Which tasks are mjlab's. Without torch: a wrong task_name is told without waiting for it."""

import importlib
import importlib.util

from trainer.errors import ConfigurationError

PREFIX = "Mjlab-"
"""What mjlab's own task IDs begin with; a user's may have any name."""


def has_task(task_name: str) -> bool:
    """Whether mjlab, or a package that was imported, registers this task.

    Raises:
        ConfigurationError: the name is one of mjlab's, and it is not installed or has no such task.
    """
    if importlib.util.find_spec("mjlab") is None:
        if task_name.startswith(PREFIX):
            raise ConfigurationError(
                f"task_name: {task_name} is an mjlab task, and this environment has no mjlab;"
                " pip install 'canard-hydra[trainer,mjlab]', or start the platform with --trainer-python of"
                " an environment that has it"
            )
        return False
    return task_name in task_ids()


def task_ids() -> list[str]:
    """All task IDs of mjlab; none where it is not installed."""
    if importlib.util.find_spec("mjlab") is None:
        return []
    importlib.import_module("mjlab.tasks")
    registry = importlib.import_module("mjlab.tasks.registry")
    return list(registry.list_tasks())
