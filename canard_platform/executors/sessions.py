"""All processes of one attempt: those of its session, and those that left it but carry its mark."""

import contextlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass

import psutil
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

MARK = "CANARD_ATTEMPT_ID"
"""Environment variable by which a process that made a session of its own (torchrun's do) is still found."""

KILL_TIMEOUT_S = 10.0
SAME_START_S = 2.0
"""A process with our pid that began this near to ours is ours: the system clock may be set in between."""


@dataclass(frozen=True, kw_only=True)
class Leader:
    """The first process of an attempt, and so of its session. A pid alone may be another's by now."""

    attempt_id: str
    pid: int
    created: float
    """POSIX time."""

    def lives(self) -> bool:
        try:
            process = psutil.Process(self.pid)
            return self._is(process) and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    def processes(self) -> list[psutil.Process]:
        """Everything of the attempt that runs, zombies aside."""
        session_is_ours = self._has_session()
        return [process for process in psutil.process_iter() if self._owns(process, session_is_ours)]

    def kill_all(self) -> bool:
        """SIGKILL to all of it; False if some stayed."""
        return _kill_until_none_is_left(self.processes)

    def _is(self, process: psutil.Process) -> bool:
        return abs(process.create_time() - self.created) < SAME_START_S

    def _has_session(self) -> bool:
        """Whether the session with our number is ours: not after a reboot, nor when the pid was given away.

        As long as a session has members its number is not given to a new process, whether or not its leader
        lives.
        """
        try:
            return self._is(psutil.Process(self.pid))
        except psutil.NoSuchProcess:
            return psutil.boot_time() < self.created + SAME_START_S

    def _owns(self, process: psutil.Process, session_is_ours: bool) -> bool:
        with contextlib.suppress(OSError):
            if session_is_ours and os.getsid(process.pid) == self.pid:
                return _runs_beside_us(process)
        return _carries_mark(process, self.attempt_id)


def kill_marked(attempt_id: str) -> bool:
    """SIGKILL to everything that carries the attempt's mark except the caller; False if some stayed."""
    return _kill_until_none_is_left(
        lambda: [process for process in psutil.process_iter() if _carries_mark(process, attempt_id)]
    )


def _kill_until_none_is_left(look: Callable[[], list[psutil.Process]]) -> bool:
    """Again and again: a process may fork while we look."""

    def left_after_killing() -> list[psutil.Process]:
        found = look()
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGKILL)
        return found

    retrying = Retrying(
        retry=retry_if_result(bool),
        stop=stop_after_delay(KILL_TIMEOUT_S),
        wait=wait_fixed(0.02),
        retry_error_callback=lambda state: state.outcome.result() if state.outcome else [],
    )
    return not retrying(left_after_killing)


def _carries_mark(process: psutil.Process, attempt_id: str) -> bool:
    try:
        return _runs_beside_us(process) and process.environ().get(MARK) == attempt_id
    except (psutil.Error, OSError):
        return False  # gone meanwhile, or somebody else's


def _runs_beside_us(process: psutil.Process) -> bool:
    try:
        return process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
