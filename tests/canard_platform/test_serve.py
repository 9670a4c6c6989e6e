"""`python -m canard_platform serve` as a process: what it writes, refuses and takes away again."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

pytestmark = pytest.mark.timeout(180)


class Serve:
    """One service process with its home."""

    def __init__(self, home: Path, *options: str, **env: str) -> None:
        self.home = home
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CANARD_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "canard_platform", "serve", "--home", str(home), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**kept, **env},
        )

    def said(self) -> dict[str, Any]:
        """platform.json, once it is there."""
        file = self.home / "platform.json"
        eventually(lambda: file.exists() or self.process.poll() is not None)
        assert self.process.poll() is None, self.process.communicate()
        said: dict[str, Any] = json.loads(file.read_text())
        return said

    def key(self) -> str:
        url = self.said()["url"]
        key: str = json.loads((self.home / "credentials.json").read_text())["keys"][url]
        return key

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Serve]]:
    started: list[Serve] = []

    def start(*options: str, home: Path | None = None, **env: str) -> Serve:
        started.append(Serve(home or tmp_path / "home", *options, **env))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.end()


def eventually(condition: Callable[[], Any], within_s: float = 60) -> Any:
    deadline = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)
    return found


def get(serving: Serve, path: str) -> httpx.Response:
    headers = {"Authorization": f"Bearer {serving.key()}"}
    return httpx.get(serving.said()["url"] + path, headers=headers, trust_env=False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_announces_itself_works_with_its_key_and_leaves_nothing_running(serve, number: int):
    serving = serve("--port", "0", "--slots", "3")

    said = serving.said()
    answer = get(serving, "/v1/queue")
    code, out, err = serving.end(number)

    assert said["url"].startswith("http://127.0.0.1:")
    assert said["pid"] == serving.process.pid
    assert set(said) == {"url", "pid", "started_at", "version"}
    assert answer.status_code == 200
    assert (code, "Traceback" in err) == (0, False)
    assert said["url"] in out
    assert str(serving.home) in out
    assert "3 CPU slots" in out
    assert not (serving.home / "platform.json").exists()


def test_what_it_keeps_is_for_its_owner_only(serve):
    serving = serve("--port", "0")
    serving.said()

    modes = {
        name: stat.S_IMODE((serving.home / name).stat().st_mode)
        for name in ("credentials.json", "platform.json", "signing.key", "platform.db", "attempts")
    }

    assert stat.S_IMODE(serving.home.stat().st_mode) == 0o700
    assert modes.pop("attempts") == 0o700
    assert set(modes.values()) == {0o600}


def test_the_key_and_the_runs_outlive_a_restart(serve):
    port = str(free_port())
    first = serve("--port", port)
    key = first.key()
    url = first.said()["url"]
    body = {"name": "x", "config": {"mode": "training", "training_config": {"task_name": "X-v0"}}}
    created = httpx.post(
        f"{url}/v1/runs", json=body, headers={"Authorization": f"Bearer {key}"}, trust_env=False
    )
    slug = created.json()["slug"]
    httpx.post(f"{url}/v1/runs/{slug}/cancel", headers={"Authorization": f"Bearer {key}"}, trust_env=False)
    first.end()

    second = serve("--port", port)

    assert second.key() == key
    assert get(second, f"/v1/runs/{slug}").status_code == 200


def test_a_second_service_of_the_same_home_is_refused(serve):
    first = serve("--port", "0")
    first.said()

    code, _, err = serve("--port", "0").wait()

    assert code == 1
    assert err.strip().startswith("error: a platform runs already for")
    assert "canard down" in err
    assert get(first, "/v1/health").status_code == 200
    assert (first.home / "platform.json").exists()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def test_a_port_that_is_taken_is_refused_or_in_the_background_replaced(serve, tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        code, _, err = serve("--port", str(port)).wait()
        other = serve("--port", str(port), "--background", home=tmp_path / "other")

        assert code == 1
        assert f"cannot listen on 127.0.0.1:{port}" in err
        assert other.said()["url"] != f"http://127.0.0.1:{port}"
        assert get(other, "/v1/queue").status_code == 200


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--host", "0.0.0.0"), "would let other machines in"),
        (("--host", "example.org"), "would let other machines in"),
        (("--host", "0.0.0.0", "--allow-remote"), "say --public-url"),
        (("--public-url", "ftp://x"), "is no URL"),
        (("--trainer-python", "/no/such/python"), "--trainer-python: /no/such/python cannot be executed"),
        (("--lease-s", "5", "--heartbeat-s", "4"), "--lease-s must be at least twice --heartbeat-s"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(serve, options: tuple[str, ...], said: str):
    code, out, err = serve("--port", "0", *options).wait()

    assert (code, out) == (1, "")
    assert said in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("content", ["", "not hex", "00ff"])
def test_a_broken_signing_key_is_named(serve, tmp_path: Path, content: str):
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home" / "signing.key").write_text(content)

    code, _, err = serve("--port", "0").wait()

    assert code == 1
    assert "signing.key" in err
    assert "delete it to make a new one" in err
    assert len(err.strip().splitlines()) == 1


def test_a_home_that_cannot_be_is_named(serve, tmp_path: Path):
    (tmp_path / "file").write_text("")

    code, _, err = serve("--port", "0", home=tmp_path / "file" / "home").wait()

    assert code == 1
    assert err.startswith(f"error: --home {tmp_path}/file/home cannot be used")


def test_a_wrong_option_is_a_usage_error(serve):
    code, _, err = serve("--port", "many").wait()

    assert code == 2
    assert "Invalid value for '--port'" in err


def test_it_stops_by_itself_when_nobody_needs_it(serve):
    serving = serve("--port", "0", "--background", "--idle-timeout-s", "1")

    code, out, _ = serving.wait()

    assert code == 0
    assert "no work and no request for 1 s" in out
    assert not (serving.home / "platform.json").exists()


def test_a_key_of_the_environment_reaches_no_runner_and_a_second_ctrl_c_ends_it_at_once(serve):
    serving = serve("--port", "0", CANARD_API_KEY="of-another-platform")
    key, url = serving.key(), serving.said()["url"]
    body = {"name": "x", "config": {"mode": "physics", "steps": 1_000_000}}
    httpx.post(
        f"{url}/v1/runs", json=body, headers={"Authorization": f"Bearer {key}"}, trust_env=False
    ).raise_for_status()
    [file] = eventually(lambda: list((serving.home / "attempts").glob("*/process.json")))
    runner = psutil.Process(json.loads(file.read_text())["pid"])

    environment = runner.environ()
    serving.process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    code, _, err = serving.end(signal.SIGINT)

    assert "CANARD_API_KEY" not in environment
    assert environment["CANARD_ATTEMPT_ID"] == file.parent.name
    assert (code, "Traceback" in err) == (0, False)
    assert not runner.is_running() or runner.status() == psutil.STATUS_ZOMBIE


def test_ctrl_c_again_and_again_still_puts_everything_away(serve):
    serving = serve("--port", "0")
    serving.said()

    for _ in range(1000):
        if serving.process.poll() is not None:
            break
        serving.process.send_signal(signal.SIGINT)
        time.sleep(0.01)
    code, _, err = serving.wait()

    assert (code, "Traceback" in err) == (0, False)
    assert not (serving.home / "platform.json").exists()


def test_help_loads_no_server():
    look = (
        "import sys; from click.testing import CliRunner; from canard_platform.__main__ import main;"
        "r = CliRunner().invoke(main, ['serve', '--help']); assert '--trainer-python' in r.output;"
        "print(sorted({'fastapi', 'sqlalchemy', 'uvicorn', 'alembic', 'torch'} & set(sys.modules)))"
    )

    answer = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)

    assert answer.stdout.strip() == "[]"


def test_serving_loads_no_trainer_and_no_alembic_when_the_schema_is_there(serve):
    """Every start of a demo waits for these imports."""
    look = (
        "import sys; import canard_platform.serve;"
        "print(sorted({'torch', 'gymnasium', 'alembic', 'boto3', 'ray', 'trainer'} & set(sys.modules)))"
    )

    answer = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)

    assert answer.stdout.strip() == "[]"
