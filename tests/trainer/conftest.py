"""The trainer as a process, as the attempt runner starts it."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Ended:
    """A trainer that ended."""

    output: Path
    code: int
    stderr: str

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        lines = (self.output / "events.jsonl").read_text().splitlines()
        events = [json.loads(line) for line in lines]
        return [event for event in events if kind in (None, event["event"])]

    @property
    def summary(self) -> dict[str, Any]:
        return json.loads((self.output / "summary.json").read_text())


class TrainerProcess:
    """Starts trainers under one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0

    def start(
        self,
        config: dict[str, Any],
        *arguments: str,
        physics: bool = False,
        path: Path | None = None,
        cwd: Path | None = None,
    ) -> tuple["subprocess.Popen[str]", Path]:
        self.count += 1
        output = self.folder / f"out{self.count}"
        config_path = self.folder / f"config{self.count}.json"
        config_path.write_text(json.dumps(config))
        command = [sys.executable, "-m", "trainer", *(["physics"] if physics else [])]
        command += ["--config", str(config_path), "--output", str(output), "--device", "cpu", *arguments]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        if path is not None:
            environment["PYTHONPATH"] = os.pathsep.join([str(path), environment.get("PYTHONPATH", "")])
        process = subprocess.Popen(
            command,
            cwd=cwd or self.folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        return process, output

    def run(self, config: dict[str, Any], *arguments: str, **how: Any) -> Ended:
        process, output = self.start(config, *arguments, **how)
        try:
            _, stderr = process.communicate(timeout=150)
        finally:
            process.kill()
        return Ended(output, process.returncode, stderr)


@pytest.fixture
def trainer(tmp_path: Path) -> TrainerProcess:
    return TrainerProcess(tmp_path)
