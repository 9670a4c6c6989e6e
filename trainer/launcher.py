"""One trainer process per GPU on this machine, watched to their end.

torchrun does much of this, and three things otherwise: it says 1 for every exit code, it kills ranks that
take longer than 30 s to save when they are asked to stop, and its store listens on every network interface.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from trainer.errors import CRASHED, DONE, INTERRUPTED, PREEMPTED
from trainer.events import EventLog
from trainer.ranks import STORE_VARIABLE
from trainer.stop import StopRequest

TICK_S = 0.1
FAILED_GRACE_S = 5.0
"""For ranks to end by themselves once one has failed: without it they wait for its gradients for ever."""


def is_a_rank() -> bool:
    """Whether this process was started as one of several, by `launch` or by torchrun."""
    return "WORLD_SIZE" in os.environ


def launch(count: int, events: EventLog, stop: StopRequest) -> int:
    """Run this very command as `count` ranks; returns the exit code of the first that failed, else 0."""
    with tempfile.TemporaryDirectory(prefix="canard-ranks-") as folder:
        ranks = [
            subprocess.Popen(sys.orig_argv, env=_environment(rank, count, Path(folder)))
            for rank in range(count)
        ]
        try:
            failed = _first_failure(ranks, stop)
            if failed is not None:
                _wait(ranks, FAILED_GRACE_S)
        except KeyboardInterrupt:  # the terminal's, so the ranks have it too
            _wait(ranks, FAILED_GRACE_S)
            return INTERRUPTED
        finally:
            for process in ranks:
                process.kill()
                process.wait()
    if failed is None:
        return DONE
    code = ranks[failed].returncode
    if code > 0:
        return code
    if stop.requested and code == -signal.SIGTERM:  # before it could listen, so before it did anything
        return PREEMPTED
    message = f"rank {failed} was killed by {signal.Signals(-code).name}"
    events.emit("failed", error_type="RankKilled", message=message, exit_code=CRASHED)
    print(f"trainer: {message}", file=sys.stderr)  # noqa: T201
    return CRASHED


def _environment(rank: int, count: int, folder: Path) -> dict[str, str]:
    given = os.environ
    threads = int(given.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
    return {
        # Nothing but this machine is spoken to; a variable of the user's own wins.
        "GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo",
        **given,
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "OMP_NUM_THREADS": str(max(1, threads // count)),
        STORE_VARIABLE: str(folder / "store"),
    }


def _first_failure(ranks: Sequence["subprocess.Popen[bytes]"], stop: StopRequest) -> int | None:
    """Number of the rank that failed first; None when all have ended well. Passes a stop on once."""
    told = False
    while True:
        if stop.requested and not told:
            told = True
            for process in ranks:
                process.terminate()
        codes = [process.poll() for process in ranks]
        # One that was killed is the cause; those that lost contact to it end with codes of their own.
        for failed in sorted(range(len(codes)), key=lambda rank: codes[rank] or 0):
            if codes[failed]:
                return failed
        if all(code == 0 for code in codes):
            return None
        time.sleep(TICK_S)


def _wait(ranks: Sequence["subprocess.Popen[bytes]"], within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while any(process.poll() is None for process in ranks) and time.monotonic() < deadline:
        time.sleep(TICK_S)
