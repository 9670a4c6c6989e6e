"""The platform service as a process of its own, for every test that wants the real thing."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

START_S = 60
STOP_S = 30


def pytest_configure() -> None:
    """A suite that is started in the background ignores Ctrl-C, and so would all that it starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True, kw_only=True)
class ServedPlatform:
    """A running service; its state and its key are under `home`."""

    url: str
    home: Path
    api_key: str = field(repr=False)
    process: "subprocess.Popen[bytes]" = field(repr=False)

    @property
    def log(self) -> str:
        return (self.home / "platform.log").read_text(errors="replace")


def start_platform(home: Path, *options: str) -> ServedPlatform:
    """`python -m canard_platform serve` on a free port, in its own process group, once it answers."""
    home.mkdir(parents=True, exist_ok=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CANARD_")}
    command = [sys.executable, "-m", "canard_platform", "serve", "--home", str(home), "--port", "0", *options]
    with (home / "platform.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            env={**environment, "OMP_NUM_THREADS": "1"},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_S
    while not (home / "platform.json").exists():
        if process.poll() is not None or time.monotonic() > deadline:
            stop_platform(process)
            pytest.fail(f"the platform did not start:\n{(home / 'platform.log').read_text(errors='replace')}")
        time.sleep(0.05)
    url = json.loads((home / "platform.json").read_text())["url"]
    keys = json.loads((home / "credentials.json").read_text())["keys"]
    return ServedPlatform(url=url, home=home, api_key=keys[url], process=process)


def stop_platform(process: "subprocess.Popen[bytes]") -> None:
    """Politely, then surely, with everything that it started in its group."""
    process.terminate()
    try:
        process.wait(timeout=STOP_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=STOP_S)


@pytest.fixture
def serve() -> Iterator[Callable[..., ServedPlatform]]:
    """`start_platform`; what it started is stopped after the test."""
    started: list[ServedPlatform] = []

    def serve_one(home: Path, *options: str) -> ServedPlatform:
        started.append(start_platform(home, *options))
        return started[-1]

    yield serve_one
    for served in started:
        stop_platform(served.process)


@pytest.fixture(scope="session")
def _served_platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPlatform]:
    served = start_platform(tmp_path_factory.mktemp("platform") / "home")
    yield served
    stop_platform(served.process)


@pytest.fixture
def platform(_served_platform: ServedPlatform, monkeypatch: pytest.MonkeyPatch) -> ServedPlatform:
    """One service for all tests; CANARD_HOME is its home, so that a Client finds the key by itself."""
    for name in ("CANARD_API_KEY", "CANARD_API_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CANARD_HOME", str(_served_platform.home))
    return _served_platform
