"""From rows to the documented JSON."""

from typing import Any
from urllib.parse import quote

from canard.models import Run, RunConfig, Task, TaskMetrics, TrainingMetrics
from canard.wire import Artifact, Reuse, SubmittedRun
from canard_platform.artifacts.keys import filename
from canard_platform.queue.states import State
from canard_platform.settings import Settings
from canard_platform.store import tables
from canard_platform.store.runs import Tally, TaskSource


def run_view(
    row: tables.Run,
    tally: Tally,
    *,
    user_name: str,
    settings: Settings,
    has_event_files: bool = False,
    members: list[dict[str, Any]] | None = None,
) -> Run:
    page = f"{settings.public_url}/runs/{quote(row.slug)}"
    config = row.config if members is None else {**row.config, "tasks": members}
    return Run.model_validate(
        {
            "id": row.id,
            "slug": row.slug,
            "name": row.name,
            "user_id": user_name,
            "config": RunConfig.model_validate(config),
            "status": row.status,
            "num_tasks": row.num_tasks,
            "completed_tasks": tally.completed,
            "failed_tasks": tally.failed,
            "cancelled_tasks": tally.cancelled,
            "reused_count": tally.reused,
            "following_count": tally.following,
            "created_at": row.created_at,
            "updated_at": row.updated_at,
            "tensorboard_url": f"{page}#tensorboard" if has_event_files else None,
            "dashboard_url": page,
            "progress_fraction": tally.progress / row.num_tasks,
        }
    )


def submitted_view(run: Run, *, submitted_as: str, reuse: Reuse) -> SubmittedRun:
    return SubmittedRun.model_construct(**dict(run), submitted_as=submitted_as, reuse=reuse)


def task_view(row: tables.Task, source: TaskSource | None, *, mode: str) -> Task:
    """A task that follows another shows how far that one is."""
    shown = source.task if source is not None and row.status == State.QUEUED else row
    return Task(
        id=row.id,
        run_id=row.run_id,
        params=row.params,
        status=row.status,
        worker_id=row.worker_id,
        s3_key=row.s3_key,
        metrics=None if row.metrics is None else TaskMetrics.model_validate(row.metrics),
        error_message=row.error_message,
        created_at=row.created_at,
        completed_at=row.completed_at,
        progress_percent=100 * shown.progress,
        index=row.index,
        attempt=row.attempt,
        code_commit=row.code_commit,
        training=training_view(shown) if mode == "training" else None,
        started_at=row.started_at,
        reused_from=source.name if source is not None else None,
    )


def training_view(row: tables.Task) -> TrainingMetrics:
    return TrainingMetrics(
        mean_reward=row.mean_reward,
        mean_episode_length=row.mean_episode_length,
        current_iteration=row.iteration,
        max_iterations=row.max_iterations,
        progress_percent=100 * row.progress,
        first_mean_reward=row.first_mean_reward,
        best_mean_reward=row.best_mean_reward,
    )


def artifact_view(row: tables.Artifact, *, task_id: int | None = None) -> Artifact:
    """`task_id`: the task whose file it is shown as, when that is not the one that made it."""
    return Artifact(
        s3_key=row.key,
        artifact_type=row.artifact_type,
        filename=filename(row.path),
        task_id=row.task_id if task_id is None else task_id,
        attempt=row.attempt,
        size_bytes=row.size_bytes,
        sha256=row.sha256,
        iteration=row.iteration,
        mean_reward=row.mean_reward,
        created_at=row.created_at,
    )
