"""Attempts as processes of this machine: one session each, in slots of GPUs or of a share of the CPUs.

What must outlive the service is in each attempt's folder: `launch.json` (read and deleted by the runner),
`process.json` (who it is and what it holds), `runner.log`, and the runner's own `exit.json`.
"""

import contextlib
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

from canard_platform.executors.executor import Job, Node, Observation, ProcessState
from canard_platform.executors.sessions import MARK, Leader
from canard_platform.files import write_private

log = logging.getLogger(__name__)

RUNNER = (sys.executable, "-m", "canard_platform.attempt")
MOST_CPU_SLOTS = 4
LAST_WORDS_BYTES = 2000


@dataclass(frozen=True, kw_only=True)
class _Place:
    """An attempt's process and what it holds, as `process.json` keeps it."""

    attempt_id: str
    pid: int
    created: float
    devices: list[str]
    """GPUs, or numbers of CPU slots."""

    @property
    def handle(self) -> str:
        return f"{self.pid}:{self.created}:{self.attempt_id}"

    @property
    def leader(self) -> Leader:
        return Leader(attempt_id=self.attempt_id, pid=self.pid, created=self.created)


@dataclass
class _Held:
    place: _Place
    process: subprocess.Popen[bytes] | None = None
    """Set for our own children, whose exit code only we can learn."""
    kill_at: float | None = None
    notified: bool = field(default=False)


class LocalExecutor:
    """Implements Executor. Slots are the GPUs; without any, `slots` or min(4, CPUs)."""

    allows_local_paths = True

    def __init__(
        self,
        attempts: Path,
        *,
        gpus: Sequence[str] = (),
        slots: int | None = None,
        command: Sequence[str] = RUNNER,
        cpus: int | None = None,
    ) -> None:
        self._attempts = attempts
        self._attempts.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._gpus = tuple(gpus)[:slots] if slots else tuple(gpus)
        cpu_count = cpus or os.cpu_count() or 1
        self._slots = len(self._gpus) or slots or min(MOST_CPU_SLOTS, cpu_count)
        self._devices = self._gpus or tuple(str(number) for number in range(self._slots))
        self._threads = max(1, cpu_count // self._slots)
        self._command = tuple(command)
        self._node = socket.gethostname()
        self._lock = threading.Lock()
        self._held: dict[str, _Held] = {place.handle: _Held(place) for place in self._remembered()}

    def capacity(self) -> Sequence[Node]:
        with self._lock:
            free = len(self._free())
        return [Node(name=self._node, slots=self._slots, free=free, gpus=len(self._gpus))]

    def submit(self, job: Job) -> str:
        with self._lock:
            for handle, held in self._held.items():
                if held.place.attempt_id == job.attempt_id:
                    return handle
            needed = job.gpu_count if self._gpus else 1
            devices = self._free()[:needed]
            if len(devices) < needed:
                raise RuntimeError(f"{needed} slots are needed, {len(devices)} are free")
            held = self._launch(job, devices)
            self._held[held.place.handle] = held
            return held.place.handle

    def poll(self, handles: Sequence[str]) -> Mapping[str, Observation]:
        with self._lock:
            for held in list(self._held.values()):
                self._enforce(held)
            return {handle: self._observe(handle) for handle in handles}

    def cancel(self, handle: str, *, grace_s: float) -> None:
        with self._lock:
            held = self._held.get(handle)
            if held is None:
                return
            if not held.notified and grace_s > 0:
                held.notified = True
                self._notify(held)
            kill_at = time.monotonic() + grace_s
            held.kill_at = kill_at if held.kill_at is None else min(held.kill_at, kill_at)
            self._enforce(held)

    def list(self) -> Sequence[str]:
        with self._lock:
            return list(self._held)

    def live_logs(self, attempt_id: str) -> Sequence[Path]:
        """What the runner of this attempt prints, and its trainer; the files need not exist."""
        folder = self._attempts / attempt_id
        return folder / "runner.log", folder / "trainer.log"

    def _launch(self, job: Job, devices: Sequence[str]) -> _Held:
        folder = self._attempts / job.attempt_id
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        env = {MARK: job.attempt_id, "OMP_NUM_THREADS": str(self._threads)}
        if self._gpus:
            env["CUDA_VISIBLE_DEVICES"] = ",".join(devices)
        launch = {**job.launch, "work_dir": str(folder), "env": env}
        write_private(folder / "launch.json", json.dumps(launch))
        with (folder / "runner.log").open("ab") as output:
            process = subprocess.Popen(
                [*self._command, "--launch", str(folder / "launch.json")],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={**os.environ, **env},
                start_new_session=True,
            )
        place = _Place(
            attempt_id=job.attempt_id,
            pid=process.pid,
            created=psutil.Process(process.pid).create_time(),
            devices=list(devices),
        )
        write_private(folder / "process.json", json.dumps(asdict(place)))
        return _Held(place, process)

    def _remembered(self) -> Sequence[_Place]:
        """Attempts that an earlier service launched and that nobody saw end."""
        places = []
        for file in self._attempts.glob("*/process.json"):
            try:
                places.append(_Place(**json.loads(file.read_text())))
            except (OSError, ValueError, TypeError) as error:
                log.warning("%s cannot be read: %s", file, error)
        return places

    def _observe(self, handle: str) -> Observation:
        held = self._held.get(handle)
        if held is None:
            return self._buried(handle)
        if self._runs(held):
            return Observation(state=ProcessState.RUNNING)
        if not self._bury(held):
            return Observation(state=ProcessState.UNKNOWN)  # something of it cannot be killed yet
        return self._buried(handle)

    def _runs(self, held: _Held) -> bool:
        if held.process is not None:
            return held.process.poll() is None
        return held.place.leader.lives()

    def _enforce(self, held: _Held) -> None:
        """Kill what has outlived its grace; free the slots of what is gone."""
        overdue = held.kill_at is not None and time.monotonic() >= held.kill_at
        if overdue or not self._runs(held):
            self._bury(held)

    def _bury(self, held: _Held) -> bool:
        """Nothing of the attempt is left afterwards, and its slots are free; False if it would not die."""
        place = held.place
        if not place.leader.kill_all():
            log.error("processes of attempt %s cannot be killed", place.attempt_id)
            return False
        exit_code = held.process.wait() if held.process is not None else None
        folder = self._attempts / place.attempt_id
        with contextlib.suppress(OSError):
            if exit_code is not None and not (folder / "exit.json").exists():
                write_private(folder / "exit.json", json.dumps({"exit_code": exit_code}))
            (folder / "launch.json").unlink(missing_ok=True)
            (folder / "process.json").unlink(missing_ok=True)
            _drop_folders(folder)
        self._held.pop(place.handle, None)
        return True

    def _buried(self, handle: str) -> Observation:
        folder = self._attempts / handle.rpartition(":")[2]
        detail = _last_words(folder / "runner.log")
        try:
            exit_code = int(_read_json(folder / "exit.json")["exit_code"])
        except (OSError, ValueError, KeyError, TypeError):
            return Observation(state=ProcessState.LOST, detail=detail)
        return Observation(state=ProcessState.EXITED, exit_code=exit_code, detail=detail)

    def _notify(self, held: _Held) -> None:
        if self._runs(held):
            with contextlib.suppress(OSError):
                os.kill(held.place.pid, signal.SIGTERM)

    def _free(self) -> Sequence[str]:
        taken = {device for held in self._held.values() for device in held.place.devices}
        return [device for device in self._devices if device not in taken]


def _drop_folders(folder: Path) -> None:
    """A runner clears up after itself unless it was killed; logs and reports are small and stay."""
    for inner in folder.iterdir():
        if inner.is_dir() and not inner.is_symlink():
            shutil.rmtree(inner, ignore_errors=True)


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text())


def _last_words(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LAST_WORDS_BYTES))
            return file.read().decode(errors="replace").strip() or None
    except OSError:
        return None
