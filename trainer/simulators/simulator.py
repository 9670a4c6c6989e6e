"""The seam between a simulator and everything that trains in it."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from rsl_rl.env import VecEnv


@dataclass(frozen=True, kw_only=True)
class TaskRequest:
    """What to build: one task with so many environments on one device."""

    task_name: str
    num_envs: int
    seed: int
    device: str
    reward_weights: dict[str, float] = field(default_factory=dict)
    """Only the terms that change."""
    physics_params: dict[str, Any] = field(default_factory=dict)
    video: bool = False
    """Whether pictures will be asked for."""
    app: object = None
    """What `start_app` returned."""
    warn: Callable[[str], None] = warnings.warn
    """Tell the user something, in one line."""


class Simulator(Protocol):
    """One task, built.

    Each module of this package has `make(request) -> Simulator`, which raises ConfigurationError for an
    unknown reward term or parameter, listing the known ones.
    """

    name: str
    env: "VecEnv"
    """rsl-rl's vectorised environment. Observations: TensorDict of groups, each (num_envs, n)."""
    step_dt_s: float
    """Simulated seconds of one env step."""
    agent_cfg: dict[str, Any]
    """The task's own agent in rsl-rl's configuration of 5.x; TrainingConfig goes over it."""
    start_at_random_episode_lengths: bool
    """Whether the first episodes should start at different ages, so that time limits do not coincide."""

    resumes_within_episodes: bool
    """Whether a loaded state holds the running episodes; else they start anew and only counters go on."""

    def state_dict(self) -> dict[str, Any] | None:
        """All that the next step depends on, as plain values and tensors; None if it cannot be told."""
        ...

    def load_state_dict(self, state: dict[str, Any], *, same_envs: bool) -> None:
        """Go on from there; with another number of environments only what belongs to no single one."""
        ...

    def random_actions(self) -> Any:
        """Actions of a physics run, (num_envs, num_actions), uniform over the action range."""
        ...

    def count_collisions(self) -> int:
        """Collisions that began in the last env step, over all environments."""
        ...

    def frame(self) -> "np.ndarray | None":
        """A picture as it is now: uint8, shape (height, width, 3); None where none can be drawn."""
        ...

    def close(self) -> None: ...
