"""A look at the processes of the service under test."""

import json
from pathlib import Path

import psutil
from attempts import eventually


def runner_of(home: Path) -> psutil.Process:
    """The runner of the one attempt that runs."""

    def running() -> list[psutil.Process]:
        found = []
        for file in (home / "attempts").glob("*/process.json"):
            try:
                process = psutil.Process(json.loads(file.read_text())["pid"])
            except (psutil.NoSuchProcess, OSError, ValueError):
                continue
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        return found if len(found) == 1 else []

    [runner] = eventually(running)
    return runner


def trainer_of(runner: psutil.Process) -> psutil.Process:
    """The trainer that this runner started."""
    [trainer] = eventually(
        lambda: [child for child in runner.children() if "trainer" in " ".join(child.cmdline())]
    )
    return trainer
