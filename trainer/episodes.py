"""Returns and lengths of finished episodes, and what they say about the policy."""

from collections import deque
from statistics import fmean
from typing import Any

import torch

WINDOW = 100
"""Episodes that the mean is over, as in rsl-rl's logger."""


class EpisodeStatistics:
    """Sums rewards per environment; an episode counts when it is done."""

    def __init__(self, num_envs: int, device: str) -> None:
        self._returns: deque[float] = deque(maxlen=WINDOW)
        self._lengths: deque[float] = deque(maxlen=WINDOW)
        self._return_so_far = torch.zeros(num_envs, device=device)
        self._length_so_far = torch.zeros(num_envs, device=device)
        self._steps: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
        """Of this iteration: returns, lengths and dones after each env step."""
        self.first_mean_reward: float | None = None
        self.best_mean_reward: float | None = None

    @property
    def mean_reward(self) -> float | None:
        """Mean return of the last finished episodes; None before the first."""
        return fmean(self._returns) if self._returns else None

    @property
    def mean_length(self) -> float | None:
        """Env steps."""
        return fmean(self._lengths) if self._lengths else None

    def add_step(self, rewards: torch.Tensor, dones: torch.Tensor) -> None:
        """Rewards and dones of one env step, each (num_envs,)."""
        done = dones > 0
        returns, lengths = self._return_so_far + rewards, self._length_so_far + 1
        # Which are done is asked once an iteration: asking in each step would wait for the GPU in each.
        self._steps.append((returns, lengths, done))
        self._return_so_far = returns.masked_fill(done, 0)
        self._length_so_far = lengths.masked_fill(done, 0)

    def close_iteration(self) -> None:
        """Take the episodes that finished in this iteration, and their mean into first and best."""
        returns, lengths, done = (torch.stack(parts) for parts in zip(*self._steps, strict=True))
        self._steps.clear()
        self._returns.extend(returns[done].tolist())
        self._lengths.extend(lengths[done].tolist())
        mean = self.mean_reward
        if mean is None:
            return
        if self.first_mean_reward is None:
            self.first_mean_reward = mean
        if self.best_mean_reward is None or mean >= self.best_mean_reward:
            self.best_mean_reward = mean

    def state_dict(self) -> dict[str, Any]:
        return {
            "returns": list(self._returns),
            "lengths": list(self._lengths),
            "return_so_far": self._return_so_far.clone(),
            "length_so_far": self._length_so_far.clone(),
            "first_mean_reward": self.first_mean_reward,
            "best_mean_reward": self.best_mean_reward,
        }

    def load_state_dict(self, state: dict[str, Any], *, same_episodes: bool) -> None:
        """Go on from there; running sums only where the environments' episodes go on too."""
        self._returns.extend(state["returns"])
        self._lengths.extend(state["lengths"])
        self.first_mean_reward = state["first_mean_reward"]
        self.best_mean_reward = state["best_mean_reward"]
        if same_episodes:
            self._return_so_far = state["return_so_far"].to(self._return_so_far.device)
            self._length_so_far = state["length_so_far"].to(self._length_so_far.device)
