"""All processes of one attempt: those of its session, and those that left it but carry its mark."""

import contextlib
import os
import signal

import psutil
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

MARK = "CANARD_ATTEMPT_ID"
"""Environment variable by which a process that made a session of its own (torchrun's do) is still found."""

KILL_TIMEOUT_S = 10.0


def processes_of(session_id: int, attempt_id: str) -> list[psutil.Process]:
    """Living processes of the attempt, zombies aside."""
    return [process for process in psutil.process_iter() if _belongs(process, session_id, attempt_id)]


def kill_all(session_id: int, attempt_id: str) -> bool:
    """SIGKILL until none is left (a process may fork while we look); False if some stayed."""

    def left_after_killing() -> list[psutil.Process]:
        found = processes_of(session_id, attempt_id)
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


def _belongs(process: psutil.Process, session_id: int, attempt_id: str) -> bool:
    try:
        if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
            return False
        return os.getsid(process.pid) == session_id or process.environ().get(MARK) == attempt_id
    except (psutil.Error, OSError):
        return False  # gone meanwhile, or somebody else's
