"""What a person may ask of a task or a whole run: cancel it, or try again what failed or was cancelled."""

from datetime import datetime

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.orm import Session

from canard.errors import ConflictError
from canard_platform.queue.followers import Source, hand_over
from canard_platform.queue.moves import changed, move, refresh_run
from canard_platform.queue.states import Move, State
from canard_platform.store.tables import Task


def cancel(session: Session, *, run_id: int, task_id: int | None = None, now: datetime) -> None:
    """Queued tasks end at once; running ones are asked to stop and end when they have.

    Whoever followed one of them is trained instead.

    Raises:
        ConflictError: everything had ended already, in another way.
    """
    scope = _scope(run_id, task_id)
    # A task that was asked already and went back to the queue cannot be: its attempt's end cancelled it.
    ended = move(session, Move.CANCEL, Task.status == State.QUEUED, *scope, now=now, source_id=None)
    asked = changed(
        session,
        update(Task)
        .where(*scope, Task.status == State.RUNNING, Task.cancel_requested_at.is_(None))
        .values(cancel_requested_at=now),
    )
    refresh_run(session, run_id, now)
    of_those = Source.run_id == run_id if task_id is None else Source.id == task_id
    hand_over(session, of_those, now=now)
    if ended or asked:
        return
    states = set(session.scalars(select(Task.status).where(*scope).distinct()))
    if not states & {State.RUNNING, State.CANCELLED}:
        what = "the run" if task_id is None else "the task"
        raise ConflictError(f"{what} has ended ({', '.join(sorted(states))}); there is nothing to cancel")


def retry(session: Session, *, run_id: int, task_id: int | None = None, now: datetime) -> None:
    """Queue again what failed or was cancelled, with fresh budgets.

    Raises:
        ConflictError: nothing in it failed or was cancelled.
    """
    moved = move(
        session,
        Move.RETRY,
        *_scope(run_id, task_id),
        now=now,
        errors=0,
        preemptions=0,
        cancel_requested_at=None,
        error_message=None,
        completed_at=None,
        available_at=now,
    )
    if not moved:
        what = "no task of the run" if task_id is None else "the task is not one that"
        raise ConflictError(f"{what} failed or was cancelled; there is nothing to retry")
    refresh_run(session, run_id, now)


def _scope(run_id: int, task_id: int | None) -> list[ColumnElement[bool]]:
    scope = [Task.run_id == run_id]
    return scope if task_id is None else [*scope, Task.id == task_id]
