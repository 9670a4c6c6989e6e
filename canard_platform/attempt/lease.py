"""How long this attempt may still write, by this machine's monotonic clock."""

import time
from collections.abc import Callable
from dataclasses import dataclass

STOP_SHARE = 0.25
STOP_AT_MOST_S = 10.0
KILL_SHARE = 0.1
KILL_AT_MOST_S = 2.0


@dataclass(frozen=True, kw_only=True)
class _Term:
    lease_s: float
    ends: float


class Lease:
    """Counted from when the renewal was asked for, so never longer than the platform counts it.

    One attribute is written whole, so threads need no lock.
    """

    def __init__(
        self, lease_s: float, *, asked_at: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._term = _Term(lease_s=lease_s, ends=asked_at + lease_s)

    def renew(self, lease_s: float, *, asked_at: float) -> None:
        self._term = _Term(lease_s=lease_s, ends=asked_at + lease_s)

    def left_s(self) -> float:
        return self._term.ends - self._clock()

    def must_stop(self) -> bool:
        """What is left is just enough to save a checkpoint in."""
        return self.left_s() <= min(self._term.lease_s * STOP_SHARE, STOP_AT_MOST_S)

    def must_kill(self) -> bool:
        """Another attempt may start any moment."""
        return self.left_s() <= min(self._term.lease_s * KILL_SHARE, KILL_AT_MOST_S)
