"""Why an attempt must stop, said once for all of its threads."""

import threading
from enum import IntEnum


class StopReason(IntEnum):
    """A higher one takes the place of a lower one, never the other way round."""

    PREEMPT = 1
    """The machine is wanted back: save, hand back."""
    UNRENEWED = 2
    """The lease is about to end and cannot be renewed: another attempt may start."""
    CANCEL = 3
    """The user does not want the task any more."""
    LEASE_LOST = 4
    """Another attempt has the task: write nothing more."""


class Stopped(Exception):  # noqa: N818 - no error: somebody asked
    """What was under way ended because the attempt must stop."""


class StopOrder:
    """Given by heartbeats and signals, obeyed by everything else."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reason: StopReason | None = None
        self.given = threading.Event()
        """Set with the first reason; whatever prepares or trains ends."""
        self.lost = threading.Event()
        """Set with LEASE_LOST; whatever delivers ends too."""

    @property
    def reason(self) -> StopReason | None:
        return self._reason

    def give(self, reason: StopReason) -> bool:
        """Whether it is news."""
        with self._lock:
            if self._reason is not None and reason <= self._reason:
                return False
            self._reason = reason
        self.given.set()
        if reason is StopReason.LEASE_LOST:
            self.lost.set()
        return True

    def check(self) -> None:
        """Raises Stopped once a reason was given."""
        if self.given.is_set():
            raise Stopped
