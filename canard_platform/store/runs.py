"""Queries on runs and tasks, each scoped by owner and bounded in number whatever the size of the answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Function, and_, case, func, select, tuple_
from sqlalchemy.orm import Session, aliased, defer

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
    reused: int = 0
    """Completed with the result of another task."""
    following: int = 0
    """Queued behind another task."""


@dataclass(frozen=True, kw_only=True)
class TaskSource:
    """The task whose result another has, or waits for."""

    task: Task
    name: str
    """`run_xxxxxxxx/3`"""


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


def sources_of(session: Session, tasks: Sequence[Task]) -> dict[int | None, TaskSource]:
    """The sources of these tasks by id, in one query, or none when there are none."""
    ids = {task.source_id for task in tasks if task.source_id is not None}
    if not ids:
        return {}
    query = (
        select(Task, Run.slug)
        .options(defer(Task.config))
        .join(Run, Run.id == Task.run_id)
        .where(Task.id.in_(ids))
    )
    return {
        task.id: TaskSource(task=task, name=f"{slug}/{task.index}") for task, slug in session.execute(query)
    }


def worker_task(session: Session, task: Task) -> Task:
    """The task whose attempts made the result of this one: mostly itself."""
    return task if task.source_id is None else session.get_one(Task, task.source_id)


def tallies(session: Session, run_ids: Sequence[int]) -> dict[int, Tally]:
    """One query for any number of runs."""
    has_source = Task.source_id.is_not(None)
    source = aliased(Task)
    followed = select(source.progress).where(source.id == Task.source_id).scalar_subquery()
    progress = case((and_(has_source, Task.status == "queued"), followed), else_=Task.progress)
    query = (
        select(
            Task.run_id,
            *(_count(Task.status == status) for status in ("completed", "failed", "cancelled")),
            func.sum(progress),
            _count(and_(has_source, Task.status == "completed")),
            _count(and_(has_source, Task.status == "queued")),
        )
        .where(Task.run_id.in_(run_ids))
        .group_by(Task.run_id)
    )
    return {
        row[0]: Tally(
            completed=row[1],
            failed=row[2],
            cancelled=row[3],
            progress=row[4],
            reused=row[5],
            following=row[6],
        )
        for row in session.execute(query)
    }


def _count(condition: ColumnElement[bool]) -> Function[int]:
    return func.sum(case((condition, 1), else_=0))


def user_name(session: Session, user_id: int) -> str:
    return session.scalars(select(User.name).where(User.id == user_id)).one()


def members_of(session: Session, run_id: int) -> list[dict[str, object]]:
    """The deltas of a run that was submitted with explicit tasks."""
    return list(session.scalars(select(Task.params).where(Task.run_id == run_id).order_by(Task.index)))


def slug_of(session: Session, run_id: int) -> str:
    return session.scalars(select(Run.slug).where(Run.id == run_id)).one()
