"""The trainer under the interpreter of a simulator's environment, as the attempt runner starts it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

LIMIT_S = 500
"""Of one trainer; a cold kernel cache alone takes a minute on two cores."""
REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Ended:
    """A trainer that ended."""

    output: Path
    code: int
    log: str

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        events = [json.loads(line) for line in (self.output / "events.jsonl").read_text().splitlines()]
        return [event for event in events if kind in (None, event["event"])]

    @property
    def summary(self) -> dict[str, Any]:
        return json.loads((self.output / "summary.json").read_text())


@dataclass(frozen=True)
class Trainer:
    """`python -m trainer` under one interpreter, with what it needs in its environment."""

    python: str
    environment: Mapping[str, str]

    def start(
        self, output: Path, config: dict[str, Any], *arguments: str, physics: bool = False, **variables: str
    ) -> "subprocess.Popen[str]":
        output.parent.mkdir(parents=True, exist_ok=True)
        config_path = output.parent / f"{output.name}.json"
        config_path.write_text(json.dumps(config))
        command = [self.python, "-m", "trainer", *(["physics"] if physics else [])]
        command += ["--config", str(config_path), "--output", str(output), "--device", "cpu", *arguments]
        with (output.parent / f"{output.name}.log").open("w") as log:
            return subprocess.Popen(
                command,
                cwd=output.parent,
                env=self.variables(**variables),
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
            )

    def run(self, output: Path, config: dict[str, Any], *arguments: str, **how: Any) -> Ended:
        process = self.start(output, config, *arguments, **how)
        try:
            process.wait(timeout=LIMIT_S)
        finally:
            process.kill()
            process.wait()
        return Ended(output, process.returncode, (output.parent / f"{output.name}.log").read_text())

    def run_program(self, program: str, folder: Path, **variables: str) -> list[str]:
        """The lines that a program prints under the same interpreter; it must end with 0."""
        done = subprocess.run(
            [self.python, "-c", program],
            cwd=folder,
            env=self.variables(**variables),
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout.splitlines()

    def variables(self, **more: str) -> dict[str, str]:
        return {**os.environ, "OMP_NUM_THREADS": "1", **self.environment, **more}


def made(script: Path, *arguments: str) -> str:
    """The interpreter of the environment that a make_env script keeps; it is not made here but skipped."""
    found = subprocess.run(
        [script, *arguments],
        env={**os.environ, "IF_MADE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode != 0:
        pytest.skip(found.stderr.strip())
    return found.stdout.splitlines()[-1]


def wait_for(path: Path, process: "subprocess.Popen[Any]", *, text: str = "") -> None:
    """Until the file is there, and has the text; the process has to live until then."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        if path.exists() and (not text or text in path.read_text()):
            return
        assert process.poll() is None, f"the process ended with {process.returncode}"
        time.sleep(0.2)
    raise AssertionError(f"no {path.name} within {LIMIT_S} s")


def newest_checkpoint(output: Path) -> Path:
    return max((output / "checkpoints").glob("model_*.pt"), key=lambda path: int(path.stem.split("_")[1]))


def mark(items: list[pytest.Item], folder: Path, marker: str) -> None:
    """All tests of the folder: with the marker that they are asked for by, and time for two trainers."""
    for item in items:
        if folder in item.path.parents:
            item.add_marker(marker)
            item.add_marker(pytest.mark.timeout(2 * LIMIT_S))


@contextmanager
def own_platform(trainer: Trainer, home: Path) -> Iterator[dict[str, str]]:
    """Variables under which commands use a platform of their own, which executes this trainer's interpreter.

    It is started by the first command that needs it, and brought down at the end.
    """
    variables = trainer.variables(CANARD_HOME=str(home), CANARD_TRAINER_PYTHON=trainer.python)
    yield variables
    down = [sys.executable, "-m", "canard.cli", "down"]
    subprocess.run(down, env=variables, timeout=60, check=False, capture_output=True)
