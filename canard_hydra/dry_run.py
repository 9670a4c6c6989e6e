"""`mode=dry_run`: the real trainer, a few iterations, on this machine.

It runs in this Python environment, or by the interpreter that CANARD_TRAINER_PYTHON names, as on a platform.

Of a sweep only the first member is tried: it shows whether task, code and simulator work, and how long an
iteration takes; the time of the others is that of the first in proportion to their environments.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console

from canard.announce import duration
from canard.errors import CanardError, PlatformError
from canard.models import TrainingConfig
from canard_hydra import interrupts
from canard_hydra.experiment import Experiment
from canard_hydra.plan import headline, total_line
from canard_hydra.terminal import print_line, stdout

TRAINER_PYTHON_VARIABLE = "CANARD_TRAINER_PYTHON"
GRACE_S = 10.0
LOG_TAIL_LINES = 15


class DryRunFailedError(CanardError):
    """The trainer did not get through the few iterations."""


def dry_run(experiment: Experiment) -> None:
    """Train the first member's few iterations, print what they took and what the whole would take.

    Raises:
        PlatformError: there is no trainer in this environment.
        DryRunFailedError: the trainer failed; says its own words.
    """
    python = _trainer_python()
    console = stdout()
    first, iterations = experiment.configs[0], experiment.control.dry_run_iterations
    print_line(
        console,
        f"Dry run of {experiment.name!r}: {iterations} iterations of {first.task_name}"
        f" with {first.num_envs} environments, here",
    )
    with tempfile.TemporaryDirectory(prefix="canard-dry-run-") as folder:
        summary = _train(first, Path(folder), iterations, python)
    _print_result(console, experiment, summary["dry_run"])


def _print_result(console: Console, experiment: Experiment, measured: dict[str, Any]) -> None:
    iteration_s, first = measured["iteration_s"], experiment.configs[0]
    print_line(
        console,
        f"Measured: {iteration_s:.3g} s per iteration, {measured['env_steps_per_s']:,.0f} env steps per"
        f" second, {duration(measured['startup_s'])} to start, {_memory(measured)} at the peak",
    )
    here_s = measured["startup_s"] + iteration_s * first.max_iterations
    print_line(console, f"{first.max_iterations:,} iterations on this machine: {duration(here_s)}")
    seconds = [iteration_s * config.num_envs / first.num_envs for config in experiment.configs]
    print_line(console, f"At this speed, {headline(experiment)}:")
    print_line(console, total_line(experiment.configs, iter_sec=seconds))
    print_line(console, "Nothing was submitted. To submit, leave out mode=dry_run.")


def _memory(measured: dict[str, Any]) -> str:
    host = f"{measured['peak_host_bytes'] / 1e9:.1f} GB of memory"
    gpu = measured["peak_gpu_bytes"]
    return host if gpu is None else f"{host} and {gpu / 1e9:.1f} GB of GPU memory"


def _trainer_python() -> str:
    named = os.environ.get(TRAINER_PYTHON_VARIABLE)
    if named:
        if shutil.which(named) is None:
            raise PlatformError(f"{TRAINER_PYTHON_VARIABLE}={named}: no such program")
        return named
    if find_spec("trainer") is None or find_spec("torch") is None:
        raise PlatformError(
            "no trainer in this environment; install it: pip install 'canard-hydra[trainer]', or name the"
            f" simulator's interpreter by {TRAINER_PYTHON_VARIABLE}"
        )
    return sys.executable


def _train(config: TrainingConfig, folder: Path, iterations: int, python: str) -> dict[str, Any]:
    config_file, output = folder / "training.json", folder / "output"
    config_file.write_text(config.model_dump_json(), encoding="utf-8")
    command = [python, "-m", "trainer", "--config", str(config_file), "--output", str(output)]
    status, log = _run([*command, "--dry-run", str(iterations)], folder / "trainer.log")
    summary = output / "summary.json"
    if status != 0 or not summary.is_file():
        raise DryRunFailedError(f"the dry run failed: {_last_words(output, status, log)}")
    told: dict[str, Any] = json.loads(summary.read_text(encoding="utf-8"))
    return told


def _run(command: list[str], log_file: Path) -> tuple[int, str]:
    """Ctrl-C ends the trainer too, also when the signal was for this process alone."""
    process: subprocess.Popen[bytes] | None = None
    with log_file.open("wb") as log, interrupts.raised():
        try:
            # A process that was born but not yet returned could not be ended.
            with interrupts.held_back(now="Interrupted: ending the trainer.", again=""):
                process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
                )
            status = process.wait()
        finally:
            if process is not None:
                _end(process)
    return status, log_file.read_text(encoding="utf-8", errors="replace")


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(timeout=GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _last_words(output: Path, status: int, log: str) -> str:
    """What the trainer says in its `failed` event, else the end of what it printed."""
    events = output / "events.jsonl"
    lines = events.read_text(encoding="utf-8").splitlines() if events.is_file() else []
    for line in reversed(lines):
        event = json.loads(line)
        if event.get("event") == "failed":
            return str(event.get("message"))
    tail = "\n".join(log.strip().splitlines()[-LOG_TAIL_LINES:])
    return f"exit code {status}; it ended with:\n{tail or '(nothing)'}"
