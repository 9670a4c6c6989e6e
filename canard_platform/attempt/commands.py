"""Running other programs so that they can be stopped, and their last words kept."""

import contextlib
import logging
import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from canard_platform.attempt.failures import AttemptFailure
from canard_platform.attempt.stop import StopOrder

log = logging.getLogger(__name__)

TICK_S = 0.05
KILL_WAIT_S = 10.0
MOST_OUTPUT_BYTES = 2**20


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A program that ended by itself."""

    exit_code: int
    out: str
    err: str
    """Both cut to their last MiB."""


def run_command(
    command: Sequence[str],
    *,
    stop: StopOrder,
    timeout_s: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Finished:
    """Run to the end, in a process group of its own.

    Raises:
        Stopped: the attempt must stop; nothing of the program is left.
        AttemptFailure: it is not installed, or took longer than `timeout_s`.
    """
    log.debug("%s", shlex.join(command))
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                process_group=0,
            )
        except OSError as error:
            raise AttemptFailure(f"{command[0]} cannot be run: {error.strerror}", retryable=False) from None
        try:
            _wait(process, command, stop, timeout_s)
        finally:
            kill_group(process)
        return Finished(exit_code=process.returncode, out=_tail(out.fileno()), err=_tail(err.fileno()))


def kill_group(process: "subprocess.Popen[bytes]") -> None:
    """Nothing of the process's group runs afterwards.

    The group is killed before its leader is reaped: only so long is its number surely ours.
    """
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: the latter, of zombies
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(KILL_WAIT_S)


def has_ended(process: "subprocess.Popen[bytes]") -> bool:
    """Whether it ended; unlike poll() without reaping it, so that its group can still be killed."""
    if process.returncode is not None:
        return True
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, process.pid, options) is not None


def _wait(
    process: "subprocess.Popen[bytes]", command: Sequence[str], stop: StopOrder, timeout_s: float
) -> None:
    deadline = time.monotonic() + timeout_s
    while not has_ended(process):
        stop.check()
        if time.monotonic() > deadline:
            raise AttemptFailure(
                f"{Path(command[0]).name} did not end within {timeout_s:.0f} s", retryable=True
            )
        stop.given.wait(TICK_S)


def _tail(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    start = max(0, size - MOST_OUTPUT_BYTES)
    return os.pread(descriptor, MOST_OUTPUT_BYTES, start).decode(errors="replace")
