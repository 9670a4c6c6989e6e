"""Signs of life, from the first moment to the last, whatever else the attempt is doing."""

import logging
import threading
import time
from types import TracebackType
from typing import Self

from canard.errors import APIError, AuthenticationError, CanardError, LeaseLostError
from canard.wire import Heartbeat, Phase
from canard_platform.attempt.api import AttemptApi, may_pass
from canard_platform.attempt.lease import Lease
from canard_platform.attempt.stop import StopOrder, StopReason

log = logging.getLogger(__name__)

TIMEOUT_SHARE = 0.25
LONGEST_TIMEOUT_S = 10.0
RETRY_S = 1.0
CHECK_S = 0.1

STOPS = {"cancel": StopReason.CANCEL, "preempt": StopReason.PREEMPT}


class Heartbeats:
    """Renews the lease from a thread of its own; gives the stop order when it must.

    Args:
        heartbeat_s: time between two of them; a failed one is tried again sooner.
    """

    def __init__(
        self, api: AttemptApi, lease: Lease, stop: StopOrder, *, heartbeat_s: float, lease_s: float
    ) -> None:
        self._api = api
        self._lease = lease
        self._stop = stop
        self._heartbeat_s = heartbeat_s
        self._timeout_s = min(lease_s * TIMEOUT_SHARE, LONGEST_TIMEOUT_S)
        self._beating = threading.Lock()
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=work, name=work.__name__, daemon=True)
            for work in (self._run, self._watch)
        ]
        self._failing = False
        self.phase: Phase = "starting"
        self.code_commit: str | None = None

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        for thread in self._threads:
            thread.join(self._timeout_s * 3)

    def end(self) -> None:
        """No more of them: the attempt has said its last word."""
        self._ended.set()

    def beat(self) -> bool:
        """One heartbeat now; whether it was answered."""
        with self._beating:
            asked_at = time.monotonic()
            beat = Heartbeat(phase=self.phase, code_commit=self.code_commit)
            try:
                answer = self._api.heartbeat(beat, timeout_s=self._timeout_s)
            except CanardError as error:
                self._failed(error)
                return False
            if self._failing:
                self._failing = False
                log.info("heartbeats are answered again")
            self._lease.renew(answer.lease_s, asked_at=asked_at)
            reason = STOPS.get(answer.stop or "")
            if reason is not None and self._stop.give(reason):
                log.info("the platform asks to stop: %s", answer.stop)
            return True

    def _failed(self, error: CanardError) -> None:
        if isinstance(error, LeaseLostError | AuthenticationError):
            log.warning("the lease is lost: %s", error)
            self._stop.give(StopReason.LEASE_LOST)
            return
        if isinstance(error, APIError) and not may_pass(error):
            log.error("a heartbeat was refused: %s", error)
        elif not self._failing:
            log.warning("a heartbeat was not answered, %.0f s of lease left: %s", self._lease.left_s(), error)
        self._failing = True

    def _run(self) -> None:
        while not self._ended.is_set() and not self._stop.lost.is_set():
            answered = self.beat()
            self._ended.wait(self._heartbeat_s if answered else min(RETRY_S, self._heartbeat_s))

    def _watch(self) -> None:
        """Apart from the beats: one that hangs must not be what the lease is slept over in."""
        while not self._ended.wait(CHECK_S):
            if self._lease.must_stop() and self._stop.give(StopReason.UNRENEWED):
                log.warning("the lease cannot be renewed; stopping before it ends")
