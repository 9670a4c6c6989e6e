"""The log of an attempt: what it uploaded, or what it prints on this machine while it runs."""

import os
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from canard.errors import NotFoundError
from canard_platform.services import Services
from canard_platform.store import tables

MOST_BYTES = 2**20
"""The end of a longer log is what one wants to see; the whole is an artifact."""


def task_log(services: Services, session: Session, task: tables.Task, attempt: int | None) -> str:
    """Raises NotFoundError when there is no such attempt, or nothing of it yet."""
    number = attempt if attempt is not None else task.attempt
    if number < 1 or number > task.attempt:
        raise NotFoundError(
            f"task {task.id} has no attempt {number} yet" if number else f"task {task.id} has not started"
        )
    uploaded = _uploaded(services, session, task.id, number)
    if uploaded is not None:
        return uploaded
    attempt_id = session.scalar(
        select(tables.Attempt.id).where(tables.Attempt.task_id == task.id, tables.Attempt.number == number)
    )
    if services.live_log is not None and attempt_id is not None:
        live = _tail(services.live_log(attempt_id))
        if live is not None:
            return live
    raise NotFoundError(f"there is no log of attempt {number} of task {task.id} yet")


def _uploaded(services: Services, session: Session, task_id: int, number: int) -> str | None:
    keys = session.scalars(
        select(tables.Artifact.key)
        .where(
            tables.Artifact.task_id == task_id,
            tables.Artifact.attempt == number,
            tables.Artifact.artifact_type == "log",
        )
        .order_by(tables.Artifact.path)
    ).all()
    texts = []
    for key in keys:
        with services.artifacts.open(key) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MOST_BYTES))
            texts.append(file.read(MOST_BYTES).decode(errors="replace"))
    return "\n".join(texts) if texts else None


def _tail(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MOST_BYTES))
            return file.read(MOST_BYTES).decode(errors="replace")
    except OSError:
        return None
