"""Stands in for `python -m trainer` where a test needs an end that the real one does not have.

Written in front of a real interpreter by `standin_python`: everything but `-m trainer` goes to that.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def standin_python(path: Path) -> str:
    """An executable that runs this file for `-P -m trainer ...`, and the real Python for all else."""
    path.write_text(
        "#!/bin/sh\n"
        f'if [ "$2 $3" = "-m trainer" ]; then shift 3; exec {sys.executable} {__file__} "$@"; fi\n'
        f'exec {sys.executable} "$@"\n'
    )
    path.chmod(0o755)
    return str(path)


class Trainer:
    def __init__(self, output: Path) -> None:
        self.output = output

    def emit(self, event: str, **fields: Any) -> None:
        line = {"event": event, "time": datetime.now(UTC).isoformat(), **fields}
        with (self.output / "events.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")

    def start(self) -> None:
        self.emit("started", iteration=0, max_iterations=10)

    def save(self, iteration: int, content: bytes = b"weights") -> str:
        path = self.output / "checkpoints" / f"model_{iteration}.pt"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        name = f"checkpoints/{path.name}"
        self.emit("checkpoint", iteration=iteration, path=name, mean_reward=1.0)
        return name

    def finish(self, iteration: int = 10) -> None:
        name = self.save(iteration)
        summary = {
            "status": "completed",
            "iteration": iteration,
            "mean_reward": 2.0,
            "best_checkpoint": name,
            "final_checkpoint": name,
            "task_metrics": {"success": True},
        }
        (self.output / "summary.json").write_text(json.dumps(summary))
        self.emit("finished", iteration=iteration)


def main() -> int:
    arguments = sys.argv[1:]
    config = json.loads(Path(arguments[arguments.index("--config") + 1]).read_text())
    trainer = Trainer(Path(arguments[arguments.index("--output") + 1]))
    trainer.start()
    name, _, said = config["task_name"].partition(":")
    print(f"this is {name}", flush=True)
    return globals()[name](trainer, said, arguments)


def done(trainer: Trainer, *_: Any) -> int:
    trainer.finish()
    return 0


def exit_with(_: Trainer, said: str, *__: Any) -> int:
    print("last words", flush=True)
    return int(said)


def fail_with(trainer: Trainer, said: str, *_: Any) -> int:
    code, _, message = said.partition(":")
    trainer.emit("failed", error_type="Error", message=message, exit_code=int(code))
    return int(code)


def say_and_crash(_: Trainer, said: str, *__: Any) -> int:
    print(said, flush=True)
    return 1


def hang_when_done(trainer: Trainer, *_: Any) -> int:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    trainer.finish()
    time.sleep(600)
    return 1


def crash_when_done(trainer: Trainer, *_: Any) -> int:
    trainer.finish()
    os.kill(os.getpid(), signal.SIGSEGV)
    return 0


def until_term(trainer: Trainer, *_: Any) -> int:
    """As the real one: SIGTERM leads to a checkpoint and 75."""
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    _with_helpers(trainer)
    while not stopped:
        time.sleep(0.02)
    trainer.save(7)
    return 75


def deaf(trainer: Trainer, *_: Any) -> int:
    """Does not hear SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _with_helpers(trainer)
    time.sleep(600)
    return 1


def when_told(trainer: Trainer, said: str, *_: Any) -> int:
    """Finish when the file is there."""
    _with_helpers(trainer)
    while not Path(said).exists():
        time.sleep(0.02)
    trainer.finish()
    return 0


def resumed(trainer: Trainer, _: str, arguments: list[str]) -> int:
    """Says in its log what it was resumed from."""
    pairs = itertools.pairwise(arguments)
    paths = [Path(value) for name, value in pairs if name == "--resume"]
    print(f"resumed from {', else '.join(path.read_text() for path in paths) or 'nothing'}", flush=True)
    trainer.finish()
    return 0


def _with_helpers(trainer: Trainer) -> None:
    helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    elsewhere = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True
    )
    part = trainer.output.parent / "pids.json.part"
    part.write_text(json.dumps([os.getpid(), helper.pid, elsewhere.pid]))
    part.rename(trainer.output.parent / "pids.json")


if __name__ == "__main__":
    sys.exit(main())
