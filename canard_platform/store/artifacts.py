"""Queries on artifacts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, func, or_, select
from sqlalchemy.orm import Session

from canard.errors import ArtifactNotFoundError
from canard.wire import UploadRequest
from canard_platform.store.tables import Artifact, Attempt, Run, Task

COMPLETED = "completed"


def record_artifact(
    session: Session, key: str, said: UploadRequest, *, attempt: Attempt, task: Task, now: datetime
) -> Artifact:
    """The row of a file that was received whole; the newest content of a key counts."""
    artifact = session.scalar(select(Artifact).where(Artifact.key == key))
    if artifact is None:
        artifact = Artifact(run_id=task.run_id, task_id=task.id, attempt=attempt.number, key=key)
        session.add(artifact)
    artifact.path = said.path
    artifact.artifact_type = said.artifact_type
    artifact.size_bytes = said.size_bytes
    artifact.sha256 = said.sha256
    artifact.iteration = said.iteration
    artifact.mean_reward = said.mean_reward
    artifact.created_at = now
    session.flush()
    return artifact


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A file as one of a task's: its own, or its source's when it has the result of another task."""

    artifact: Artifact
    task_id: int
    task_index: int


BEGINNING = (0, 0)


def page_of_artifacts(
    session: Session,
    run_id: int,
    *,
    limit: int,
    after: tuple[int, int] = BEGINNING,
    artifact_type: str | None = None,
    task_id: int | None = None,
) -> list[Shown]:
    """Task by task, in the order they came; one more than `limit` when there is a next page.

    Args:
        after: index of the task and id of the artifact that were shown last.
    """
    task_index, artifact_id = after
    query = (
        select(Artifact, Task.id, Task.index)
        .join(Artifact, Artifact.task_id == func.coalesce(Task.source_id, Task.id))
        .where(
            Task.run_id == run_id,
            or_(Task.source_id.is_(None), Task.status == COMPLETED),
            Task.index >= task_index,
            or_(Task.index > task_index, Artifact.id > artifact_id),
        )
    )
    if artifact_type is not None:
        query = query.where(Artifact.artifact_type == artifact_type)
    if task_id is not None:
        query = query.where(Task.id == task_id)
    rows = session.execute(query.order_by(Task.index, Artifact.id).limit(limit + 1))
    return [Shown(artifact=row[0], task_id=row[1], task_index=row[2]) for row in rows]


def find_artifact(session: Session, run: Run, key: str) -> Artifact:
    """By its key, or as `runs/{slug}/{path}` in a run of one task: the newest attempt that has the path.

    Raises:
        ArtifactNotFoundError: listing what there is instead.
    """
    found = session.scalar(select(Artifact).where(Artifact.key == key, _of_run(run.id)))
    prefix = f"runs/{run.slug}/"
    if found is None and run.num_tasks == 1 and key.startswith(prefix):
        query = select(Artifact).where(_of_run(run.id), Artifact.path == key.removeprefix(prefix))
        found = session.scalar(query.order_by(Artifact.attempt.desc()).limit(1))
    if found is None:
        raise ArtifactNotFoundError(f"no artifact under {key[:200]!r}", hint=_what_there_is(session, run.id))
    return found


def artifact_of_path(session: Session, task_id: int, path: str) -> Artifact | None:
    """The newest attempt's file of that path."""
    query = select(Artifact).where(Artifact.task_id == task_id, Artifact.path == path)
    return session.scalar(query.order_by(Artifact.attempt.desc()).limit(1))


def checkpoints_of(session: Session, task_id: int, *, limit: int) -> list[Artifact]:
    """Newest first, that is: by most iterations done."""
    query = (
        select(Artifact)
        .where(Artifact.task_id == task_id, Artifact.artifact_type == "checkpoint")
        .order_by(func.coalesce(Artifact.iteration, -1).desc(), Artifact.id.desc())
        .limit(limit)
    )
    return list(session.scalars(query))


def _of_run(run_id: int) -> ColumnElement[bool]:
    """Its own files, and those of the tasks whose results it has."""
    return or_(Artifact.run_id == run_id, Artifact.task_id.in_(_sources(Task.run_id == run_id)))


def _sources(*conditions: ColumnElement[bool]) -> Select[Any]:
    return select(Task.source_id).where(Task.status == COMPLETED, Task.source_id.is_not(None), *conditions)


def _what_there_is(session: Session, run_id: int) -> str:
    query = select(Artifact.key).where(_of_run(run_id))
    checkpoints_first = query.order_by((Artifact.artifact_type == "checkpoint").desc(), Artifact.id.desc())
    keys = list(session.scalars(checkpoints_first.limit(11)))
    if not keys:
        return "the run has no artifacts yet"
    return f"there is: {', '.join(keys[:10])}{', ...' if len(keys) > 10 else ''}"


def runs_with_event_files(session: Session, run_ids: Sequence[int]) -> set[int]:
    """Those of the runs that have TensorBoard event files."""
    of_run = or_(Artifact.run_id == Run.id, Artifact.task_id.in_(_sources(Task.run_id == Run.id)))
    has_one = select(Artifact.id).where(of_run, Artifact.artifact_type == "tensorboard").exists()
    return set(session.scalars(select(Run.id).where(Run.id.in_(run_ids), has_one)))


def artifact_by_id(session: Session, run_id: int, artifact_id: int) -> Artifact:
    found = session.scalar(select(Artifact).where(Artifact.id == artifact_id, _of_run(run_id)))
    if found is None:
        raise ArtifactNotFoundError("no such artifact")
    return found


def runs_with_files_of(session: Session, run: Run) -> list[str]:
    """Slugs of the runs under whose keys the files of this one lie: its own, and those of its sources."""
    sources = select(Task.run_id).where(Task.id.in_(_sources(Task.run_id == run.id)))
    query = select(Run.slug).where(or_(Run.id == run.id, Run.id.in_(sources)))
    return list(session.scalars(query.order_by(Run.id.desc())))
