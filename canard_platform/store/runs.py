"""Queries on runs and tasks, each scoped by owner and bounded in number whatever the size of the answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import case, func, select, tuple_
from sqlalchemy.orm import Session, defer

from canard.errors import RunNotFoundError, TaskNotFoundError
from canard_platform.store.tables import Run, Task, User


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What a run's tasks add up to."""

    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    progress: float = 0.0
    """Sum of the tasks' progress."""


def owned_run(session: Session, user_id: int, slug: str) -> Run:
    """Raises RunNotFoundError when there is none, or it is not the user's."""
    run = session.scalar(select(Run).where(Run.slug == slug, Run.user_id == user_id))
    if run is None:
        raise RunNotFoundError(f"no run {slug!r}")
    return run


def owned_task(session: Session, run: Run, task_id: int) -> Task:
    task = session.scalar(select(Task).where(Task.id == task_id, Task.run_id == run.id))
    if task is None:
        raise TaskNotFoundError(f"run {run.slug} has no task {task_id}")
    return task


def page_of_runs(
    session: Session, user_id: int, *, limit: int, after: tuple[datetime, int] | None, status: str | None
) -> list[Run]:
    """Newest first; one more than `limit` when there is a next page."""
    query = select(Run).where(Run.user_id == user_id)
    if status is not None:
        query = query.where(Run.status == status)
    if after is not None:
        moment, number = after
        query = query.where(tuple_(Run.created_at, Run.id) < tuple_(moment, number))
    return list(session.scalars(query.order_by(Run.created_at.desc(), Run.id.desc()).limit(limit + 1)))


def page_of_tasks(session: Session, run_id: int, *, limit: int, after: int) -> list[Task]:
    """In the order of the run; one more than `limit` when there is a next page."""
    query = (
        select(Task)
        .options(defer(Task.config))
        .where(Task.run_id == run_id, Task.id > after)
        .order_by(Task.id)
        .limit(limit + 1)
    )
    return list(session.scalars(query))


def tallies(session: Session, run_ids: Sequence[int]) -> dict[int, Tally]:
    """One query for any number of runs."""
    query = (
        select(
            Task.run_id,
            *(
                func.sum(case((Task.status == status, 1), else_=0))
                for status in ("completed", "failed", "cancelled")
            ),
            func.sum(Task.progress),
        )
        .where(Task.run_id.in_(run_ids))
        .group_by(Task.run_id)
    )
    return {
        row[0]: Tally(completed=row[1], failed=row[2], cancelled=row[3], progress=row[4])
        for row in session.execute(query)
    }


def user_name(session: Session, user_id: int) -> str:
    return session.scalars(select(User.name).where(User.id == user_id)).one()


def members_of(session: Session, run_id: int) -> list[dict[str, object]]:
    """The deltas of a run that was submitted with explicit tasks."""
    return list(session.scalars(select(Task.params).where(Task.run_id == run_id).order_by(Task.index)))


def slug_of(session: Session, run_id: int) -> str:
    return session.scalars(select(Run.slug).where(Run.id == run_id)).one()
