"""The table at the end of a run that was waited for."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from rich.console import Console

from canard.announce import duration
from canard.home import canard_home
from canard.models import Task
from canard.run_handle import RunHandle
from canard_hydra.columns import rows_of, sweep_columns
from canard_hydra.experiment import Experiment
from canard_hydra.terminal import print_line, print_table


def print_results(
    console: Console, handle: RunHandle, tasks: Sequence[Task], experiment: Experiment, *, api_url: str
) -> None:
    """A row per task; then the best one, where its checkpoint is, and the dashboard."""
    columns = sweep_columns(experiment)
    values = rows_of(columns, len(tasks))
    headers = [
        "task",
        *columns,
        "status",
        "first reward",
        "final reward",
        "best reward",
        "time",
        "checkpoint",
    ]
    rows = [_row(handle, task, cells) for task, cells in zip(tasks, values, strict=True)]
    if any(task.reused_from for task in tasks):
        headers.append("reused from")
        rows = [[*row, task.reused_from or ""] for row, task in zip(rows, tasks, strict=True)]
    print_table(console, headers, rows)
    _print_best(console, handle, tasks, api_url)
    print_line(console, f"Dashboard: {handle.dashboard_url}")


def _row(handle: RunHandle, task: Task, swept: Sequence[str]) -> list[str]:
    training = task.training
    rewards = (
        (training.first_mean_reward, training.mean_reward, training.best_mean_reward)
        if training
        else (None, None, None)
    )
    return [
        str(task.index),
        *swept,
        task.status,
        *("-" if reward is None else f"{reward:.2f}" for reward in rewards),
        _time(task),
        _short_key(handle, task),
    ]


def _time(task: Task) -> str:
    if task.started_at is None or task.completed_at is None:
        return "-"
    return duration((task.completed_at - task.started_at).total_seconds())


def _short_key(handle: RunHandle, task: Task) -> str:
    """Within the run: `tasks/3/attempt-1/checkpoints/model_150.pt`."""
    return task.s3_key.removeprefix(f"runs/{handle.slug}/") if task.s3_key else "-"


def _print_best(console: Console, handle: RunHandle, tasks: Sequence[Task], api_url: str) -> None:
    done = [
        task for task in tasks if task.s3_key and task.training and task.training.best_mean_reward is not None
    ]
    if not done:
        return
    best = max(done, key=lambda task: task.training.best_mean_reward or 0.0 if task.training else 0.0)
    print_line(
        console, f"Best: task {best.index}; its best checkpoint: {_place(handle, best.s3_key or '', api_url)}"
    )


def _place(handle: RunHandle, key: str, api_url: str) -> str:
    """A path when this machine's platform has it on disk, else how to fetch it."""
    path = _on_disk(key)
    if path is not None:
        return str(path)
    return f"{key} (fetch it: Client({api_url!r}).download_artifact({handle.slug!r}, {key!r}, '.'))"


def _on_disk(key: str) -> Path | None:
    parts = PurePosixPath(key).parts
    if ".." in parts:
        return None
    path = canard_home() / "artifacts" / Path(*parts)
    return path if path.is_file() else None
