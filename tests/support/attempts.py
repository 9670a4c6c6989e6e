"""The attempt runner as a real process against a real service."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from stage import Stage, Worker

PATIENCE_S = 60


def eventually(condition: Callable[[], Any], *, within_s: float = PATIENCE_S) -> Any:
    """What `condition` says once it is true."""
    deadline = time.monotonic() + within_s
    while not (said := condition()):
        assert time.monotonic() < deadline, f"not within {within_s:.0f} s: {condition}"
        time.sleep(0.02)
    return said


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@dataclass
class RunnerProcess:
    """One attempt under way."""

    stage: Stage
    worker: Worker
    slug: str
    folder: Path
    process: "subprocess.Popen[bytes]" = field(repr=False)

    @property
    def log(self) -> str:
        return (self.folder / "runner.log").read_text()

    @property
    def task(self) -> dict[str, Any]:
        [task] = self.stage.tasks(self.slug)
        return task

    @property
    def paths(self) -> list[str]:
        """Of the task's artifacts, without what they all begin with."""
        items = self.stage.http.get(f"/runs/{self.slug}/artifacts", params={"limit": 1000}).json()["items"]
        return sorted(item["s3_key"].partition("/tasks/")[2].partition("/")[2] for item in items)

    def artifact(self, path: str) -> bytes:
        key = f"runs/{self.slug}/tasks/{self.task['id']}/{path}"
        answer = self.stage.http.get(f"/runs/{self.slug}/artifacts/url", params={"key": key})
        assert answer.status_code == 200, answer.text
        return self.stage.http.get(answer.json()["url"]).content

    def pids(self) -> list[int]:
        """Of the stand-in trainer and its helpers, once it runs."""
        return eventually(self._read_pids)

    def _read_pids(self) -> list[int]:
        path = self.folder / "pids.json"
        return json.loads(path.read_text()) if path.exists() else []

    def wait(self) -> int:
        """Its exit code; nothing of it is left."""
        code = self.process.wait(PATIENCE_S)
        assert json.loads((self.folder / "exit.json").read_text()) == {"exit_code": code}
        assert not (self.folder / "launch.json").exists()
        assert not [pid for pid in self._read_pids() if is_running(pid)]
        return code

    def kill(self) -> None:
        """For the end of a test, whatever came of it."""
        for pid in [self.process.pid, *self._read_pids()]:
            if is_running(pid):
                family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
                for one in family:
                    one.kill()
        self.process.wait(PATIENCE_S)


def start_runner(
    stage: Stage,
    *,
    api_url: str | None = None,
    trainer_python: str = sys.executable,
    slug: str | None = None,
    late: Worker | None = None,
    **config: Any,
) -> RunnerProcess:
    """Claim the next task (of a run submitted with `config`), unless `late` has, and start its runner."""
    if slug is None:
        defaults = {"task_name": "Canard-Cartpole-v0", "num_envs": 8, "max_iterations": 2, "seed": 1}
        slug = stage.submit(training_config={**defaults, **config})["slug"]
    worker = late or stage.claim()
    folder = stage.home / "runners" / worker.claim.attempt_id
    folder.mkdir(parents=True)
    launch = {
        "api_url": api_url or stage.url,
        "attempt_id": worker.claim.attempt_id,
        "token": worker.claim.token,
        "trainer_python": trainer_python,
        "work_dir": str(folder),
        "git_cache": str(stage.home / "cache" / "git"),
        "allow_local_paths": True,
        "env": {"OMP_NUM_THREADS": "1"},
    }
    path = folder / "launch.json"
    path.write_text(json.dumps(launch))
    with (folder / "runner.log").open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "canard_platform.attempt", "--launch", str(path)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    return RunnerProcess(stage=stage, worker=worker, slug=slug, folder=folder, process=process)
