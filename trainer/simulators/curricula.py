"""Curricula across a resume, of Isaac Lab's tasks and of mjlab's, whose managers are the same.

Bodies are not put back: all episodes start anew, at the difficulty that was reached.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


def state_dict(task: Any) -> dict[str, Any]:
    """What difficulty depends on: steps so far, and the terrain level of each environment."""
    levels = _levels(task)
    return {
        "common_step_counter": int(task.common_step_counter),
        "terrain_levels": None if levels is None else levels.clone(),
    }


def load_state_dict(
    task: Any, state: dict[str, Any], *, reset: Callable[[], object], same_envs: bool
) -> None:
    """Go on at this difficulty: `reset` starts all episodes anew.

    With another number of environments, or without levels, each keeps the level that it has drawn.
    """
    now, saved = _levels(task), state.get("terrain_levels")
    levels = saved if same_envs and saved is not None else now
    kept = None if now is None or levels is None else levels.to(now.device, copy=True)
    task.common_step_counter = state["common_step_counter"]
    reset()  # takes what depends on the counter, as ranges of commands
    if kept is None:
        return
    # It also took each robot for one that had not walked, and moved it to an easier terrain.
    _set_levels(task.scene.terrain, kept)
    with _paused(task):
        reset()


def _levels(task: Any) -> torch.Tensor | None:
    """None on a plane, and where there is no terrain."""
    levels: torch.Tensor | None = getattr(getattr(task.scene, "terrain", None), "terrain_levels", None)
    return levels


def _set_levels(terrain: Any, levels: torch.Tensor) -> None:
    terrain.terrain_levels[:] = levels
    terrain.env_origins[:] = terrain.terrain_origins[terrain.terrain_levels, terrain.terrain_types]


class _NoCurricula:
    """Stands in for a curriculum manager: a reset asks it for these two."""

    def compute(self, env_ids: object = None) -> None:
        pass

    def reset(self, env_ids: object = None) -> dict[str, float]:
        return {}


@contextmanager
def _paused(task: Any) -> Iterator[None]:
    manager = getattr(task, "curriculum_manager", None)
    if manager is None:  # a direct task, which has its own ways
        yield
        return
    task.curriculum_manager = _NoCurricula()
    try:
        yield
    finally:
        task.curriculum_manager = manager
