"""The `serve` command: a platform on this machine, from an empty folder to answering requests."""

import contextlib
import logging
import os
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import FrameType

from filelock import FileLock, Timeout

from canard import __version__
from canard.api_url import is_loopback
from canard.credentials import ENVIRONMENT_VARIABLE, kept_key, store_key
from canard.errors import PlatformError
from canard_platform.artifacts.filesystem import FilesystemStore
from canard_platform.artifacts.signing import Signer
from canard_platform.clock import SystemClock
from canard_platform.dispatcher import Launch
from canard_platform.executors.gpus import visible_gpus
from canard_platform.executors.local import LocalExecutor
from canard_platform.home_files import HomeFiles, announce, signing_secret
from canard_platform.queue.counts import has_work
from canard_platform.service import Service
from canard_platform.services import Services
from canard_platform.settings import Settings
from canard_platform.store.database import Database
from canard_platform.store.migrate import migrate
from canard_platform.store.users import ensure_user, find_caller, issue_key

LOCAL_USER = "local"
WILDCARDS = frozenset({"0.0.0.0", "::"})  # noqa: S104 - named in order to be asked about
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
IDLE_CHECK_S = 1.0
ORPHAN_AGE = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """What the command line said."""

    home: Path
    host: str
    port: int
    any_port: bool
    """Take another port when this one is taken."""
    slots: int | None
    idle_timeout_s: float | None
    """Stop after so long without work and requests; None for never."""
    trainer_python: str
    lease_s: float
    heartbeat_s: float
    allow_remote: bool
    public_url: str | None
    """Under which address others reach it, when that is not host and port."""


def serve(options: ServeOptions) -> None:
    """Run until SIGINT, SIGTERM or idleness; everything is stopped and put away when this returns.

    Raises:
        PlatformError: it cannot start, in one line.
    """
    _check(options)
    # The service needs no key of its own, and neither do the trainers, which would inherit it.
    os.environ.pop(ENVIRONMENT_VARIABLE, None)
    files = HomeFiles(options.home)
    try:
        options.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        files.lock.touch(mode=0o600)
    except OSError as error:
        raise PlatformError(f"--home {options.home} cannot be used: {error.strerror}") from error
    with _only_one(files), _listen(options) as listening:
        services = _assemble(options, files, options.public_url or _url(options.host, listening))
        try:
            _run(options, files, services, listening)
        finally:
            files.announcement.unlink(missing_ok=True)
            services.database.close()


def _run(options: ServeOptions, files: HomeFiles, services: Services, listening: socket.socket) -> None:
    launch = Launch(trainer_python=options.trainer_python, git_cache=str(files.git_cache))
    service = Service(services, launch, listening)
    stop = threading.Event()
    with _signals(stop, service):
        try:
            service.start()
            url = services.settings.public_url
            _keep_a_key(services, url, options.home)
            announce(files, url=url, pid=os.getpid(), started_at=services.clock.now(), version=__version__)
            _greet(options, services)
            _wait(options, services, stop)
            print("stopping: running attempts hand back their checkpoints", flush=True)  # noqa: T201
        finally:
            service.stop()


def _assemble(options: ServeOptions, files: HomeFiles, url: str) -> Services:
    settings = Settings(public_url=url, lease_s=options.lease_s, heartbeat_s=options.heartbeat_s)
    database = Database(f"sqlite:///{files.database}")
    try:
        migrate(database.engine)
    except RuntimeError as error:
        raise PlatformError(str(error)) from error
    os.chmod(files.database, 0o600)
    secret = signing_secret(files)
    clock = SystemClock()
    artifacts = FilesystemStore(
        files.artifacts,
        signer=Signer(secret, purpose="blobs"),
        base_url=settings.public_url,
        url_ttl_s=settings.url_ttl_s,
        clock=clock,
    )
    artifacts.sweep(older_than=clock.now() - ORPHAN_AGE)
    executor = LocalExecutor(files.attempts, gpus=visible_gpus(), slots=options.slots)
    return Services(
        settings=settings,
        database=database,
        artifacts=artifacts,
        executor=executor,
        secret=secret,
        clock=clock,
        live_logs=executor.live_logs,
    )


def _keep_a_key(services: Services, url: str, home: Path) -> None:
    """Clients of this machine's user find a key that works: the one from before, or a new one."""
    now = services.clock.now()
    kept = kept_key(url, home=home)
    with services.database.read() as session:
        if kept is not None and find_caller(session, kept, now) is not None:
            return
    with services.database.write() as session:
        key = issue_key(session, ensure_user(session, LOCAL_USER, now), now)
    store_key(url, key, home=home)


def _wait(options: ServeOptions, services: Services, stop: threading.Event) -> None:
    while not stop.wait(IDLE_CHECK_S):
        idle_s = options.idle_timeout_s
        if idle_s is None or services.activity.idle_s() < idle_s:
            continue
        with services.database.read() as session:
            if not has_work(session):
                print(f"no work and no request for {idle_s:.0f} s", flush=True)  # noqa: T201
                return


def _check(options: ServeOptions) -> None:
    if not options.allow_remote and not is_loopback(f"http://{_bracketed(options.host)}"):
        raise PlatformError(
            f"--host {options.host} would let other machines in, over plain HTTP and with this machine's"
            " files in reach of whoever has a key; say --allow-remote if that is what you want"
        )
    if options.public_url is None and options.host in WILDCARDS:
        raise PlatformError(
            f"--host {options.host} is no address to call: say --public-url http://<this machine>:<port>,"
            " under which links and attempt runners reach it"
        )
    if shutil.which(options.trainer_python) is None:
        raise PlatformError(f"--trainer-python: {options.trainer_python} cannot be executed")
    if options.heartbeat_s * 2 > options.lease_s:
        raise PlatformError(
            "--lease-s must be at least twice --heartbeat-s, or one late beat loses the lease"
        )


@contextlib.contextmanager
def _only_one(files: HomeFiles) -> Iterator[None]:
    lock = FileLock(files.lock)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise PlatformError(
            f"a platform runs already for {files.home}; see `canard status`, stop it with `canard down`"
        ) from None
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def _listen(options: ServeOptions) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((options.host, options.port))
        except OSError as error:
            if not options.any_port:
                raise PlatformError(
                    f"cannot listen on {options.host}:{options.port}: {error.strerror}; choose another --port"
                ) from error
            listening.bind((options.host, 0))
        listening.listen(128)
        yield listening


@contextlib.contextmanager
def _signals(stop: threading.Event, service: Service) -> Iterator[None]:
    """Ctrl-C, `kill` and a closed terminal stop the service; a second one does not wait for the attempts.

    Once stopped there is nothing left to hurry: later ones are ignored until the process ends, which would
    otherwise be killed while it puts its files away.
    """

    def handle(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            # Not from the handler itself: it may have interrupted the very code whose lock it would need.
            threading.Thread(target=service.hurry, daemon=True).start()
        stop.set()

    before = {number: signal.signal(number, handle) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if stop.is_set() else handler)


def _url(host: str, listening: socket.socket) -> str:
    return f"http://{_bracketed(host)}:{listening.getsockname()[1]}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _greet(options: ServeOptions, services: Services) -> None:
    [node] = services.executor.capacity()
    what = f"{node.gpus} GPUs" if node.gpus else f"{node.slots} CPU slots"
    print(f"Canard platform: {services.settings.public_url}", flush=True)  # noqa: T201
    print(f"home: {options.home}   {what}   stop with Ctrl-C or `canard down`", flush=True)  # noqa: T201


def log_to_stderr() -> None:
    for noisy in ("alembic", "uvicorn"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
