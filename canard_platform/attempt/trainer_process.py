"""The trainer as a process: started, asked to stop, made to stop."""

import logging
import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from canard_platform.attempt.commands import has_ended, kill_group
from canard_platform.attempt.failures import AttemptFailure
from canard_platform.executors.sessions import MARK, kill_marked

log = logging.getLogger(__name__)


class TrainerProcess:
    """In a process group of its own within the attempt's session; its output goes to one file."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        attempt_id: str,
        cwd: Path,
        env: Mapping[str, str],
        log_file: Path,
    ) -> None:
        self._attempt_id = attempt_id
        log.info("%s", shlex.join(command))
        with log_file.open("ab") as output:
            try:
                self._process = subprocess.Popen(
                    command,
                    cwd=cwd,
                    env={**env, MARK: attempt_id},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    process_group=0,
                )
            except OSError as error:
                raise AttemptFailure(
                    f"the trainer's interpreter {command[0]} cannot be run: {error.strerror}", retryable=False
                ) from None

    @property
    def pid(self) -> int:
        return self._process.pid

    def has_ended(self) -> bool:
        return has_ended(self._process)

    def ask_to_stop(self) -> None:
        """SIGTERM, to the trainer alone: its helpers dying first would break its last checkpoint."""
        if not self.has_ended():
            os.kill(self._process.pid, signal.SIGTERM)

    def end(self) -> int:
        """Leave nothing of it running, whether or not it ended by itself; returns its exit code."""
        kill_group(self._process)
        # Those that made a group of their own, as torchrun's workers do, carry the attempt's mark.
        kill_marked(self._attempt_id)
        return self._process.returncode
