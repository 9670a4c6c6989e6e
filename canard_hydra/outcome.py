"""What became of one member."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Neither objective nor error: it was planned, tried, or left to go on."""

    objective: float | list[float] | None = None
    """What a sweeper that searches is given: the key `metric`, or each of its list."""
    error: str | None = None
    """Of the run, when this member did not complete."""
    reason: str | None = None
    """Of this member, when it has no objective."""
