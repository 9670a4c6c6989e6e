"""The first command of the README, as a newcomer types it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from canard import Client
from canard.credentials import find_key

pytestmark = pytest.mark.e2e

SWEEP = [sys.executable, "-m", "canard_hydra", "-m", "name=demo", "ppo.learning_rate=1e-4,3e-4"]


@pytest.fixture
def home(tmp_path: Path):
    """A fresh CANARD_HOME, whose platform is stopped at the end whatever happened."""
    home = tmp_path / "home"
    yield home
    subprocess.run(
        [sys.executable, "-m", "canard.cli", "down"], env=environment(home), timeout=60, check=False
    )
    assert not (home / "platform.json").exists()


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CANARD_")}
    return {**kept, "CANARD_HOME": str(home), "COLUMNS": "160"}


def run(
    command: list[str], home: Path, cwd: Path, timeout_s: float = 240
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=environment(home),
        cwd=cwd,
        timeout=timeout_s,
        capture_output=True,
        text=True,
        check=False,
    )


def client_of(home: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setenv("CANARD_HOME", str(home))
    monkeypatch.delenv("CANARD_API_KEY", raising=False)
    url = json.loads((home / "platform.json").read_text())["url"]
    assert find_key(url).value
    return Client(api_url=url)


@pytest.mark.timeout(400)
def test_the_demo_trains_two_policies_whose_rewards_rise_fivefold(home: Path, tmp_path: Path, monkeypatch):
    first = run(SWEEP, home, tmp_path)

    assert first.returncode == 0, first.stdout + first.stderr
    assert re.search(r"http://127\.0\.0\.1:\d+/runs/run_\w{8}", first.stdout)
    with client_of(home, monkeypatch) as client:
        [submitted] = client.list_runs()
        tasks = client.get_run_tasks(submitted.slug)
        assert [task.params["learning_rate"] for task in tasks] == [1e-4, 3e-4]
        for task in tasks:
            assert task.status == "completed"
            assert task.training is not None
            assert task.training.first_mean_reward > 0
            assert task.training.mean_reward >= 5 * task.training.first_mean_reward
        kinds = {artifact["artifact_type"] for artifact in client.list_artifacts(submitted.slug)}
        assert {"checkpoint", "policy", "tensorboard", "summary", "log"} <= kinds

    again = run([*SWEEP, "max_iterations=3"], home, tmp_path)

    assert again.returncode == 0, again.stdout + again.stderr
    with client_of(home, monkeypatch) as client:
        assert len(client.list_runs()) == 2


@pytest.mark.parametrize("after_s", [0.3, 1.5, 3.0, 6.0])
def test_ctrl_c_leaves_a_detached_run_or_nothing(home: Path, tmp_path: Path, after_s: float, monkeypatch):
    process = subprocess.Popen(
        SWEEP, env=environment(home), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    time.sleep(after_s)  # real time on purpose: the key comes wherever the command happens to be
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)

    assert process.returncode in (130, -signal.SIGINT), out + err
    assert "Traceback" not in err
    if not (home / "platform.json").exists():
        return
    with client_of(home, monkeypatch) as client:
        runs = client.list_runs()
        if not runs:
            return
        [submitted] = runs
        assert f"canard watch {submitted.slug}" in out + err
        assert f"canard cancel {submitted.slug}" in out + err
        cancelled = run([sys.executable, "-m", "canard.cli", "cancel", submitted.slug], home, tmp_path)
        assert cancelled.returncode == 0, cancelled.stderr
