"""The platform of this machine: find it, start it in the background, stop it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from canard.credentials import ENVIRONMENT_VARIABLE, kept_key
from canard.errors import CanardError, PlatformError
from canard.home import canard_home
from canard.http import Http
from canard.retries import Patience
from canard.wire import Health

if TYPE_CHECKING:
    import psutil

SERVICE = "canard_platform"
NEEDED = (SERVICE, "alembic", "fastapi", "psutil", "sqlalchemy", "uvicorn")
"""The service and what its extra brings; looked for, never imported here."""

POLL_S = 0.1
HEALTH_S = 3.0
KILLED_S = 5.0
LOG_TAIL_LINES = 15


@dataclass(frozen=True, kw_only=True)
class LocalPlatform:
    """A running platform of this machine and the key for it."""

    url: str
    api_key: str = field(repr=False)
    pid: int
    started_at: str | None = None
    version: str | None = None


def running(home: Path | None = None) -> LocalPlatform | None:
    """The platform whose state is under `home`, if it is up and answers.

    Raises:
        CredentialsError: the file with its key is open to others or broken.
    """
    home = home or canard_home()
    said = _said(home)
    if said is None or not _is_alive(said["pid"]) or not _answers(said["url"]):
        return None
    key = kept_key(said["url"], home=home)
    if key is None:
        return None
    return LocalPlatform(
        url=said["url"],
        api_key=key,
        pid=said["pid"],
        started_at=said.get("started_at"),
        version=said.get("version"),
    )


def ensure_running(home: Path | None = None, *, timeout_s: float = 60.0) -> LocalPlatform:
    """The running platform, started in the background first if need be; two callers make one.

    Interrupted while it starts, the new service is stopped again.

    Raises:
        PlatformError: it cannot be installed here, or did not come up; says what its log ends with.
    """
    home = home or canard_home()
    found = running(home)
    if found is not None:
        return found
    refuse_if_not_installed()
    with _starting(home, timeout_s):
        # Whoever held the lock before may just have started it.
        return running(home) or _start(home, timeout_s)


def stop(home: Path | None = None, *, timeout_s: float = 20.0) -> bool:
    """Stop the platform; False when none was up. Its runs wait in the queue for the next start.

    Raises:
        PlatformError: it cannot be stopped by this user, or did not end in time.
    """
    home = home or canard_home()
    with _starting(home, timeout_s):
        said = _said(home)
        was_up = said is not None and _is_the_service(said["pid"])
        if said is not None and was_up:
            _end(said["pid"], timeout_s)
        if said is not None and _said(home) == said:
            # The service removes it, unless it was killed.
            _file(home).unlink(missing_ok=True)
        return was_up


def refuse_if_not_installed() -> None:
    """
    Raises:
        PlatformError: the service's packages are missing; says what to install.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise PlatformError(
            f"this environment cannot run the platform ({', '.join(missing)} missing);"
            " install it: pip install 'canard-hydra[platform,trainer]'"
        )


def _file(home: Path) -> Path:
    return home / "platform.json"


def _said(home: Path) -> dict[str, Any] | None:
    """What platform.json says; None when it is absent, half of another time, or not ours."""
    try:
        said = json.loads(_file(home).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if (
        not isinstance(said, dict)
        or not isinstance(said.get("pid"), int)
        or not isinstance(said.get("url"), str)
    ):
        return None
    return said


def _answers(url: str) -> bool:
    http = Http(url, None, patience=Patience(total_s=HEALTH_S, tries=1))
    with contextlib.closing(http):
        try:
            http.get("/v1/health", Health)
        except CanardError:
            return False
    return True


@contextlib.contextmanager
def _starting(home: Path, timeout_s: float) -> Iterator[None]:
    """Only one process at a time starts or stops the platform."""
    lock = FileLock(home / "start.lock", timeout=timeout_s)
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise PlatformError(
            f"another process has been starting or stopping the platform for {timeout_s:g} s"
            f" ({lock.lock_file})"
        ) from None
    except OSError as error:
        raise PlatformError(f"{error.filename or home}: {error.strerror or error}") from error
    try:
        yield
    finally:
        lock.release()


def _start(home: Path, timeout_s: float) -> LocalPlatform:
    log = home / "platform.log"
    written_before = log.stat().st_size if log.exists() else 0
    process = None
    try:
        with _interrupts_held_back():
            process = _spawn(home, log)
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            found = running(home)
            if found is not None:
                # It outlives this process on purpose: tell Popen that nobody waits for it.
                process.returncode = 0
                return found
            if process.poll() is not None:
                raise PlatformError(
                    f"the platform ended while starting (exit code {process.returncode});"
                    f" {log} ends with:\n{_tail(log, written_before)}"
                )
            time.sleep(POLL_S)
        raise PlatformError(
            f"the platform did not answer within {timeout_s:g} s;"
            f" {log} ends with:\n{_tail(log, written_before)}"
        )
    except BaseException:
        if process is not None:
            _end_child(process)
        raise


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Ctrl-C in the middle of a spawn would lose the only reference to the new process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: caught.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if caught:
        signal.raise_signal(signal.SIGINT)


def _spawn(home: Path, log: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", SERVICE, "serve", "--background", "--home", str(home)]
    # A key for another platform is none of its business, nor of the trainings that it starts.
    environment = {name: value for name, value in os.environ.items() if name != ENVIRONMENT_VARIABLE}
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "ab") as output:
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _end_child(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout=10)


def _tail(log: Path, start: int) -> str:
    with log.open("rb") as file:
        file.seek(start)
        text = file.read().decode(errors="replace")
    return "\n".join(text.strip().splitlines()[-LOG_TAIL_LINES:]) or "(nothing)"


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def _is_the_service(pid: int) -> bool:
    """Whether `pid` is a platform: numbers are used again after a crash."""
    refuse_if_not_installed()
    import psutil

    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and any(SERVICE in part for part in process.cmdline())
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied as error:
        raise PlatformError(f"the platform (process {pid}) belongs to another user") from error


def _end(pid: int, timeout_s: float) -> None:
    import psutil

    try:
        process = psutil.Process(pid)
        process.terminate()
        if not _has_ended(process, timeout_s):
            process.kill()
            if not _has_ended(process, KILLED_S):
                raise PlatformError(f"the platform (process {pid}) does not end")
    except psutil.NoSuchProcess:
        return
    except psutil.AccessDenied as error:
        raise PlatformError(f"the platform (process {pid}) belongs to another user") from error


def _has_ended(process: "psutil.Process", timeout_s: float) -> bool:
    """Waits for it; one that ended but was not reaped by its parent has ended too."""
    import psutil

    deadline = time.monotonic() + timeout_s
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_S)
    return True
