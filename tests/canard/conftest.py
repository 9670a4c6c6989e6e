"""Servers, clocks and a clean environment for the SDK's tests."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loopback import FakeTime, Script, Server


@pytest.fixture
def serve() -> Iterator[Callable[[Script], Server]]:
    """Starts servers; they end with the test."""
    servers: list[Server] = []

    def start(script: Script) -> Server:
        servers.append(Server(script))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def fake_time() -> FakeTime:
    return FakeTime()


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No key, proxy or state of the person who runs the tests."""
    for name in ("CANARD_API_KEY", "CANARD_API_URL", "CANARD_ALLOW_HTTP"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("CANARD_HOME", str(tmp_path / "canard-home"))
