"""The trainer watched to its end: its files taken as they appear, orders obeyed, a hang ended."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from canard_platform.attempt.lease import Lease
from canard_platform.attempt.stop import StopOrder, StopReason
from canard_platform.attempt.trainer_process import TrainerProcess

log = logging.getLogger(__name__)

TICK_S = 0.1
HANG_S = 60.0
"""How long a trainer that wrote its end marker may take to go."""

GRACE_S = {
    StopReason.PREEMPT: 60.0,
    StopReason.UNRENEWED: 60.0,
    StopReason.CANCEL: 10.0,
    StopReason.LEASE_LOST: 0.0,
}
"""How long the trainer has to save after it was asked to stop; the end of the lease cuts it short."""


@dataclass(frozen=True, kw_only=True)
class Watch:
    """What the trainer is watched for."""

    stop: StopOrder
    lease: Lease
    end_marker: Path
    each_tick: Callable[[], None]
    hang_s: float = HANG_S

    def until_it_ends(self, process: TrainerProcess) -> int:
        """Its exit code; nothing of it runs any more, however this returns."""
        try:
            self._follow(process)
        finally:
            exit_code = process.end()
        return exit_code

    def _follow(self, process: TrainerProcess) -> None:
        asked_at: float | None = None
        marked_at: float | None = None
        while not process.has_ended():
            self.each_tick()
            now = time.monotonic()
            reason = self.stop.reason
            if reason is not None:
                if asked_at is None:
                    log.info("asking the trainer to stop: %s", reason.name)
                    process.ask_to_stop()
                    asked_at = now
                if now - asked_at >= GRACE_S[reason] or self.lease.must_kill():
                    log.warning("the trainer did not stop in time and is killed")
                    return
            if marked_at is None and self.end_marker.exists():
                marked_at = now
            if marked_at is not None and now - marked_at > self.hang_s:
                log.warning("the trainer is done but does not end, and is killed")
                return
            time.sleep(TICK_S)
