"""What one iteration was."""

from dataclasses import dataclass, field
from typing import Any

SUCCESS_TAGS = ("Episode/success", "Metrics/success_rate")
"""Under which a task logs the share (0-1) of its episodes that succeeded: Gymnasium's here, Isaac Lab's."""


@dataclass(frozen=True, kw_only=True)
class IterationReport:
    iteration: int
    """Iterations done, this one included."""
    max_iterations: int
    env_steps: int
    """Since the start of the task, over all environments and attempts."""
    mean_reward: float | None
    mean_episode_length: float | None
    collection_s: float
    learning_s: float
    env_steps_per_s: float
    learning_rate: float
    action_std: float
    losses: dict[str, float]
    task_scalars: dict[str, float] = field(default_factory=dict)
    """What the task itself logs, by its own tags."""

    @property
    def success_rate(self) -> float | None:
        """0-100, over the episodes of this iteration; None where the task does not say."""
        shares = [value for tag, value in self.task_scalars.items() if tag in SUCCESS_TAGS]
        return 100 * shares[0] if shares else None

    @property
    def iteration_s(self) -> float:
        return self.collection_s + self.learning_s

    def as_event(self) -> dict[str, Any]:
        return {
            "iteration": self.iteration,
            "max_iterations": self.max_iterations,
            "env_steps": self.env_steps,
            "mean_reward": self.mean_reward,
            "mean_episode_length": self.mean_episode_length,
            "env_steps_per_s": self.env_steps_per_s,
            "iteration_s": self.iteration_s,
            "learning_rate": self.learning_rate,
            "losses": self.losses,
            "action_std": self.action_std,
            **({"success_rate": self.success_rate} if self.success_rate is not None else {}),
        }
