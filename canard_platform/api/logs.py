"""The log of an attempt: what it uploaded, or what it prints on this machine while it runs."""

import contextlib
import os
from typing import BinaryIO

from sqlalchemy import select
from sqlalchemy.orm import Session

from canard.errors import NotFoundError
from canard_platform.artifacts.keys import filename
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
    texts = _uploaded(services, session, task.id, number) or _live(services, session, task.id, number)
    if not texts:
        raise NotFoundError(f"there is no log of attempt {number} of task {task.id} yet")
    if len(texts) == 1:
        [text] = texts.values()
        return text
    return "\n".join(f"==> {name} <==\n{text}" for name, text in texts.items())


def _uploaded(services: Services, session: Session, task_id: int, number: int) -> dict[str, str]:
    """Text by file name."""
    logs = session.execute(
        select(tables.Artifact.key, tables.Artifact.path)
        .where(
            tables.Artifact.task_id == task_id,
            tables.Artifact.attempt == number,
            tables.Artifact.artifact_type == "log",
        )
        .order_by(tables.Artifact.path)
    )
    texts = {}
    for key, path in logs:
        with services.artifacts.open(key) as file:
            texts[filename(path)] = _end_of(file)
    return texts


def _live(services: Services, session: Session, task_id: int, number: int) -> dict[str, str]:
    query = select(tables.Attempt.id).where(
        tables.Attempt.task_id == task_id, tables.Attempt.number == number
    )
    texts = {}
    for path in services.live_logs(session.scalars(query).one()):
        with contextlib.suppress(OSError), path.open("rb") as file:
            texts[path.name] = _end_of(file)
    return texts


def _end_of(file: BinaryIO) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - MOST_BYTES))
    return file.read(MOST_BYTES).decode(errors="replace")
