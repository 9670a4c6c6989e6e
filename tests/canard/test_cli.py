"""The `canard` command as people type it: a process of its own, against the real service."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback import Answer, Request, Script, Server, run_json

from canard import Client, ConflictError, RunConfig, TrainingConfig

CANARD = [sys.executable, "-m", "canard.cli"]
TRAINING = RunConfig(
    mode="training",
    training_config=TrainingConfig(task_name="Canard-Cartpole-v0", num_envs=32, max_iterations=2),
)

Canard = Callable[..., "subprocess.CompletedProcess[str]"]
Serve = Callable[[Script], Server]


def environment(home: Path, **extra: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CANARD_")}
    return {**kept, "CANARD_HOME": str(home), "COLUMNS": "160", **extra}


@pytest.fixture
def canard(tmp_path: Path) -> Canard:
    """Runs the command with an empty home, or with the one said."""

    def run(*arguments: str, home: Path | None = None, **extra: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*CANARD, *arguments],
            env=environment(home or tmp_path / "home", **extra),
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )

    return run


@pytest.fixture
def submitted(platform: Any) -> Iterator[str]:
    """Slug of a run on the real service; cancelled at the end."""
    with Client(platform.url, platform.api_key) as client:
        handle = client.submit_run("from [cli] tests", TRAINING)
        yield handle.slug
        with contextlib.suppress(ConflictError):  # it may have ended
            handle.cancel()


# The platform of this machine


def test_status_of_nothing(canard: Canard, tmp_path: Path):
    told = canard("status")
    as_json = canard("status", "--json")

    assert (told.returncode, told.stderr) == (0, "")
    assert "canard up" in told.stdout
    assert json.loads(as_json.stdout) == {"running": False, "home": str(tmp_path / "home")}


def test_down_of_nothing(canard: Canard):
    assert canard("down").stdout == "No platform was up.\n"


def test_up_status_down(canard: Canard, tmp_path: Path):
    home = tmp_path / "home"
    command = [*CANARD, "up", "--port", "0", "--slots", "1"]
    with subprocess.Popen(
        command, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as up:
        try:
            deadline = time.monotonic() + 60
            while not (home / "platform.json").exists() and time.monotonic() < deadline and up.poll() is None:
                time.sleep(0.05)
            status = json.loads(canard("status", "--json").stdout)
            second = canard("up")
            down = canard("down")
            up.wait(timeout=30)
        finally:
            up.kill()

    assert (status["running"], status["pid"]) == (True, up.pid)
    assert status["queue"]["running"] == 0
    assert "key" not in " ".join(status)
    assert second.returncode == 1
    assert f"already up at {status['url']}" in second.stderr
    assert down.stdout == "The platform is down.\n"
    assert up.returncode == 0
    assert json.loads(canard("status", "--json").stdout)["running"] is False


# Runs


def test_runs_and_show(canard: Canard, platform: Any, submitted: str):
    listed = canard("runs", home=platform.home)
    as_json = canard("runs", "--json", "--limit", "1", home=platform.home)
    shown = canard("show", submitted, home=platform.home)
    shown_json = json.loads(canard("show", submitted, "--json", home=platform.home).stdout)

    assert submitted in listed.stdout
    assert "from [cli] tests" in listed.stdout
    assert [run["slug"] for run in json.loads(as_json.stdout)] == [submitted]
    assert f"{platform.url}/runs/{submitted}" in shown.stdout
    assert shown_json["slug"] == submitted
    assert [task["index"] for task in shown_json["tasks"]] == [0]


def test_an_explicit_platform_is_asked_with_its_key(canard: Canard, platform: Any, submitted: str):
    by_option = canard("show", submitted, "--api-url", platform.url, CANARD_API_KEY=platform.api_key)
    by_variable = canard("show", submitted, CANARD_API_URL=platform.url, CANARD_API_KEY=platform.api_key)

    assert by_option.returncode == by_variable.returncode == 0
    assert submitted in by_option.stdout
    assert submitted in by_variable.stdout


def test_cancel(canard: Canard, platform: Any, submitted: str):
    done = canard("cancel", submitted, "--json", home=platform.home)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["slug"] == submitted


@pytest.mark.timeout(120)
def test_watch_and_logs(canard: Canard, platform: Any, submitted: str):
    watched = canard("watch", submitted, home=platform.home)
    logs = canard("logs", submitted, "--task", "0", home=platform.home)
    no_such_task = canard("logs", submitted, "--task", "5", home=platform.home)

    assert watched.returncode == 0, watched.stderr
    assert f"{submitted} completed: {platform.url}/runs/{submitted}" in watched.stdout
    assert logs.returncode == 0
    assert logs.stdout.strip()
    assert (no_such_task.returncode, no_such_task.stdout) == (1, "")
    assert "tasks 0 to 0" in no_such_task.stderr


def test_open_prints_a_link_that_signs_in_once(canard: Canard, platform: Any, submitted: str):
    opened = canard("open", submitted, "--print-only", home=platform.home)

    assert opened.returncode == 0, opened.stderr
    assert opened.stdout.startswith(f"{platform.url}/login/")


def test_ctrl_c_leaves_a_watched_run_running_and_says_how_to_come_back(serve: Serve, tmp_path: Path):
    def script(request: Request) -> Answer:
        if "/tasks" in request.path:
            return Answer(200, {"items": [], "next_cursor": None})
        return Answer(200, run_json(status="running"))

    server = serve(script)
    watching = subprocess.Popen(
        [*CANARD, "watch", "run_a1b2c3d4", "--api-url", server.url],
        env=environment(tmp_path, CANARD_API_KEY="k"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while len(server.requests) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)

    watching.send_signal(signal.SIGINT)
    _, err = watching.communicate(timeout=30)

    assert watching.returncode == 130
    assert err == (
        "run_a1b2c3d4 goes on. Come back: canard watch run_a1b2c3d4. Stop it: canard cancel run_a1b2c3d4\n"
    )
    assert {request.method for request in server.requests} == {"GET"}


# Mistakes


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("runs",), "no platform is up on this machine: start it with `canard up`"),
        (("show", "run_x", "--api-url", "127.0.0.1:8787"), "is no URL; write it like http://127.0.0.1:8787"),
        (
            ("show", "run_x", "--api-url", "https://api.canard.cloud"),
            "no API key for https://api.canard.cloud",
        ),
        (("runs", "--api-url", "http://10.0.0.5:1"), "no API key for http://10.0.0.5:1"),
    ],
)
def test_a_mistake_is_one_line_on_stderr_and_exit_code_1(
    canard: Canard, arguments: tuple[str, ...], told: str
):
    failed = canard(*arguments)

    assert failed.returncode == 1
    assert failed.stdout == ""
    assert told in failed.stderr
    assert failed.stderr.count("\n") == 1
    assert "Traceback" not in failed.stderr


def test_a_run_that_is_not_there(canard: Canard, platform: Any):
    failed = canard("show", "run_zzzzzzzz", home=platform.home)

    assert failed.returncode == 1
    assert "run_zzzzzzzz" in failed.stderr
    assert failed.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [("wach", "run_x"), ("watch",), ("runs", "--limit", "many"), ("logs", "r", "--task", "-1")]
)
def test_wrong_usage_is_exit_code_2(canard: Canard, arguments: tuple[str, ...]):
    failed = canard(*arguments)

    assert failed.returncode == 2
    assert "Traceback" not in failed.stderr
    assert "Error: " in failed.stderr


def test_a_reader_that_leaves_early_is_no_crash(platform: Any, submitted: str):
    command = " ".join([sys.executable, "-m", "canard.cli", "runs", "--json", "--limit", "1000"])
    piped = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | head -c 1 >/dev/null"],
        env=environment(platform.home),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert "Traceback" not in piped.stderr
    assert "BrokenPipe" not in piped.stderr


@pytest.mark.parametrize(
    "command", ["up", "down", "status", "runs", "show", "watch", "logs", "cancel", "open"]
)
def test_every_command_explains_itself(canard: Canard, command: str):
    explained = canard(command, "--help")

    assert explained.returncode == 0
    assert explained.stdout.startswith(f"Usage: canard {command} ")
