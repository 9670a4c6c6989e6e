"""What the tasks of a run add up to, in the documented words of RunMetrics.

- `avg_physics_fps`, `avg_episode_reward`: means over the tasks that have one; `total_collisions`: their sum.
- `success_rate`: successful tasks among those that ended (completed or failed), 0-100.
- `training`: `current_iteration` and `max_iterations` of the task that is furthest, `progress_percent` the
  mean over all tasks, `mean_reward`, `first_mean_reward` and `mean_episode_length` means over the tasks that
  have one, `best_mean_reward` the best of any task.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Row, func, or_, select
from sqlalchemy.orm import Session

from canard.models import RunMetrics, TrainingMetrics
from canard_platform.queue.states import State
from canard_platform.store.tables import Point, Run, Task


def run_metrics(session: Session, run: Run, *, most_points: int) -> RunMetrics:
    tasks = session.execute(
        select(
            Task.id,
            Task.status,
            Task.metrics,
            Task.progress,
            Task.iteration,
            Task.max_iterations,
            Task.mean_reward,
            Task.first_mean_reward,
            Task.best_mean_reward,
            Task.mean_episode_length,
        )
        .where(Task.run_id == run.id)
        .order_by(Task.id)
    ).all()
    results = [task.metrics for task in tasks if task.metrics is not None]
    ended = sum(task.status in {State.COMPLETED, State.FAILED} for task in tasks)
    succeeded = sum(bool(result.get("success")) for result in results)
    return RunMetrics(
        avg_physics_fps=_mean(result.get("avg_fps") for result in results),
        success_rate=100 * succeeded / ended if ended else 0.0,
        avg_episode_reward=_mean(result.get("total_reward") for result in results),
        total_collisions=sum(result.get("collision_count") or 0 for result in results),
        completed_tasks=sum(task.status == State.COMPLETED for task in tasks),
        total_tasks=run.num_tasks,
        mode=run.mode,
        training=_training(session, run.id, tasks, most_points) if run.mode == "training" else None,
    )


def reward_history(session: Session, run_id: int, most_points: int) -> list[dict[str, Any]]:
    """Ordered by task and iteration; every n-th iteration, and each task's last, when there are too many.

    A task that has the result of another, or waits for it, has its curve.
    """
    owner = func.coalesce(Task.source_id, Task.id)
    count = (
        session.scalar(
            select(func.count())
            .select_from(Task)
            .join(Point, Point.task_id == owner)
            .where(Task.run_id == run_id)
        )
        or 0
    )
    query = (
        select(
            Task.id,
            Point.iteration,
            Point.mean_reward,
            Point.mean_episode_length,
            Point.numbers["nonfinite"],
        )
        .select_from(Task)
        .join(Point, Point.task_id == owner)
        .where(Task.run_id == run_id)
    )
    if count > most_points:
        stride = -(-count // most_points)
        last = (
            select(Task.id, func.max(Point.iteration).label("iteration"))
            .join(Point, Point.task_id == owner)
            .where(Task.run_id == run_id)
            .group_by(Task.id)
            .subquery()
        )
        query = query.join(last, last.c.id == Task.id).where(
            or_(Point.iteration % stride == 0, Point.iteration == last.c.iteration)
        )
    return [_point(row) for row in session.execute(query.order_by(Task.id, Point.iteration))]


def _training(session: Session, run_id: int, tasks: Sequence[Any], most_points: int) -> TrainingMetrics:
    best = [task.best_mean_reward for task in tasks if task.best_mean_reward is not None]
    return TrainingMetrics(
        mean_reward=_mean(task.mean_reward for task in tasks),
        mean_episode_length=_mean(task.mean_episode_length for task in tasks),
        current_iteration=max(task.iteration for task in tasks),
        max_iterations=max(task.max_iterations for task in tasks),
        progress_percent=100 * sum(task.progress for task in tasks) / len(tasks),
        reward_history=reward_history(session, run_id, most_points),
        first_mean_reward=_mean(task.first_mean_reward for task in tasks),
        best_mean_reward=max(best, default=None),
    )


def _point(row: Row[*tuple[Any, ...]]) -> dict[str, Any]:
    task_id, iteration, mean_reward, mean_episode_length, nonfinite = row
    point = {
        "task_id": task_id,
        "iteration": iteration,
        "mean_reward": mean_reward,
        "mean_episode_length": mean_episode_length,
    }
    return {**point, "nonfinite": nonfinite} if nonfinite else point


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
