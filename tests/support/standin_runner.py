"""Stands in for the attempt runner: does over HTTP and with processes what `task_name` says."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


def main() -> int:
    path = Path(sys.argv[sys.argv.index("--launch") + 1])
    launch = json.loads(path.read_text())
    path.unlink()
    if "token" not in launch:  # a test of the executor alone
        return act(launch.get("task_name", "Return-0"), Path(launch["work_dir"]))
    client = httpx.Client(
        base_url=f"{launch['api_url']}/v1/attempts/{launch['attempt_id']}",
        headers={"Authorization": f"Bearer {launch['token']}"},
        trust_env=False,
    )
    with client:
        spec = post(client, "start")
        return play(client, spec, Path(launch["work_dir"]))


def play(client: httpx.Client, spec: dict[str, Any], folder: Path) -> int:
    name = spec["config"]["task_name"]
    post(client, "heartbeat", {"phase": "training"})
    if name == "Complete-v0" or (name == "CrashOnce-v0" and spec["attempt"] > 1):
        complete(client)
        return 0
    if name == "UntilCancelled-v0":
        return until_told(client)
    if name == "HandsBack-v0":
        return until_the_notice(client, folder)
    return act(name, folder)


def act(name: str, folder: Path) -> int:
    print(f"this is {name}", flush=True)
    if name.startswith("Return-"):
        return int(name.removeprefix("Return-"))
    if name == "CrashOnce-v0":
        os.kill(os.getpid(), signal.SIGKILL)
    trainer = subprocess.Popen(SLEEPER)
    elsewhere = subprocess.Popen(SLEEPER, start_new_session=True)
    (folder / "pids.json.part").write_text(json.dumps([os.getpid(), trainer.pid, elsewhere.pid]))
    (folder / "pids.json.part").rename(folder / "pids.json")
    if name == "Stubborn-v0":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
    return 1


def until_told(client: httpx.Client) -> int:
    stop = None
    while stop is None:
        stop = post(client, "heartbeat", {"phase": "training"})["stop"]
        time.sleep(0.05)
    post(client, "commit", {"outcome": "cancelled"})
    return 0


def until_the_notice(client: httpx.Client, folder: Path) -> int:
    notice = []
    signal.signal(signal.SIGTERM, lambda *_: notice.append(True))
    (folder / "pids.json").write_text(json.dumps([os.getpid()]))
    while not notice:
        time.sleep(0.02)
    post(client, "commit", {"outcome": "preempted", "exit_code": 75, "error": "handed back"})
    return 75


def complete(client: httpx.Client) -> None:
    content = b"weights"
    said = {
        "path": "checkpoints/model_1.pt",
        "artifact_type": "checkpoint",
        "size_bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "iteration": 1,
    }
    client.put(post(client, "uploads", said)["url"], content=content).raise_for_status()
    post(client, "artifacts", said)
    summary = {"iteration": 1, "mean_reward": 2.0, "best_checkpoint": said["path"]}
    post(client, "commit", {"outcome": "completed", "exit_code": 0, "summary": summary})


def post(client: httpx.Client, path: str, body: Any = None) -> Any:
    answer = client.post(path, json=body)
    answer.raise_for_status()
    return answer.json() if answer.content else None


if __name__ == "__main__":
    sys.exit(main())
