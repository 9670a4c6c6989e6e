"""All that one attempt needs to know, said at its start."""

from pathlib import Path
from typing import Literal, cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from canard.wire import AttemptSpec, Checkpoint
from canard_platform.artifacts.keys import filename
from canard_platform.services import Services
from canard_platform.store.artifacts import checkpoints_of
from canard_platform.store.tables import Artifact, Attempt, Run, Task

MOST_RESUME_POINTS = 5
"""Checkpoints to fall back on when the newest is not sound."""


def attempt_spec(services: Services, session: Session, attempt: Attempt, task: Task) -> AttemptSpec:
    run = session.scalars(select(Run).where(Run.id == task.run_id)).one()
    return AttemptSpec(
        run_slug=run.slug,
        task_id=task.id,
        attempt=attempt.number,
        mode=cast("Literal['training', 'physics']", run.mode),
        config=task.config,
        code_commit=task.code_commit,
        local_code_allowed=services.executor.allows_local_paths,
        resume=[
            _from_artifact(services, found)
            for found in checkpoints_of(session, task.id, limit=MOST_RESUME_POINTS)
        ],
        start_from=_start_from(services, session, task),
        lease_s=services.settings.lease_s,
        heartbeat_s=services.settings.heartbeat_s,
    )


def _start_from(services: Services, session: Session, task: Task) -> Checkpoint | None:
    if task.start_from is None:
        return None
    if "path" in task.start_from:
        path = task.start_from["path"]
        return Checkpoint(local_path=path, filename=Path(path).name, sha256=task.start_from.get("sha256"))
    found = session.scalars(select(Artifact).where(Artifact.key == task.start_from["key"])).one()
    return _from_artifact(services, found)


def _from_artifact(services: Services, found: Artifact) -> Checkpoint:
    name = filename(found.path)
    return Checkpoint(
        url=services.artifacts.download_url(found.key, filename=name).url,
        filename=name,
        size_bytes=found.size_bytes,
        sha256=found.sha256,
        iteration=found.iteration,
    )
