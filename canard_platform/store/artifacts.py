"""Queries on artifacts."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from canard.errors import ArtifactNotFoundError
from canard.wire import UploadRequest
from canard_platform.store.tables import Artifact, Attempt, Run, Task


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


def page_of_artifacts(
    session: Session,
    run_id: int,
    *,
    limit: int,
    after: int,
    artifact_type: str | None = None,
    task_id: int | None = None,
) -> list[Artifact]:
    """In the order they came; one more than `limit` when there is a next page."""
    query = select(Artifact).where(Artifact.run_id == run_id, Artifact.id > after)
    if artifact_type is not None:
        query = query.where(Artifact.artifact_type == artifact_type)
    if task_id is not None:
        query = query.where(Artifact.task_id == task_id)
    return list(session.scalars(query.order_by(Artifact.id).limit(limit + 1)))


def find_artifact(session: Session, run: Run, key: str) -> Artifact:
    """By its key, or as `runs/{slug}/{path}` in a run of one task: the newest attempt that has the path.

    Raises:
        ArtifactNotFoundError: listing what there is instead.
    """
    found = session.scalar(select(Artifact).where(Artifact.run_id == run.id, Artifact.key == key))
    prefix = f"runs/{run.slug}/"
    if found is None and run.num_tasks == 1 and key.startswith(prefix):
        query = select(Artifact).where(Artifact.run_id == run.id, Artifact.path == key.removeprefix(prefix))
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


def _what_there_is(session: Session, run_id: int) -> str:
    query = select(Artifact.key).where(Artifact.run_id == run_id)
    checkpoints_first = query.order_by((Artifact.artifact_type == "checkpoint").desc(), Artifact.id.desc())
    keys = list(session.scalars(checkpoints_first.limit(11)))
    if not keys:
        return "the run has no artifacts yet"
    return f"there is: {', '.join(keys[:10])}{', ...' if len(keys) > 10 else ''}"


def runs_with_event_files(session: Session, run_ids: Sequence[int]) -> set[int]:
    """Those of the runs that have TensorBoard event files."""
    query = select(Artifact.run_id).where(
        Artifact.run_id.in_(run_ids), Artifact.artifact_type == "tensorboard"
    )
    return set(session.scalars(query.distinct()))


def artifact_by_id(session: Session, run_id: int, artifact_id: int) -> Artifact:
    found = session.scalar(select(Artifact).where(Artifact.id == artifact_id, Artifact.run_id == run_id))
    if found is None:
        raise ArtifactNotFoundError("no such artifact")
    return found
