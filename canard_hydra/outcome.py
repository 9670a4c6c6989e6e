"""What became of one member."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Neither reward nor error: it was planned, tried, or left to go on."""

    mean_reward: float | None = None
    """Final; what a sweeper that searches is given."""
    error: str | None = None
    """Of the run, when this member did not complete."""
