"""The end of an attempt, and what becomes of its task: the only place that decides on retries."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.orm import Session

from canard.errors import LeaseLostError
from canard_platform.queue.followers import Source, hand_over
from canard_platform.queue.moves import changed, move, refresh_run
from canard_platform.queue.states import RULES, TERMINAL, Move, Outcome, State
from canard_platform.settings import Settings
from canard_platform.store.tables import Attempt, Task

LEASE_RAN_OUT = "the attempt gave no sign of life before its lease ran out"


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How an attempt ended; `result` are the task's columns that a completed one fills."""

    outcome: Outcome
    error: str | None = None
    exit_code: int | None = None
    retryable: bool = True
    report_hash: str | None = None
    result: dict[str, Any] | None = None


def end_attempt(
    session: Session, attempt_id: str, ending: Ending, *, settings: Settings, now: datetime
) -> State:
    """End a running attempt and move its task; returns the task's new state.

    Raises:
        LeaseLostError: the attempt has ended already.
    """
    attempt, task = fenced(session, attempt_id)
    closed = changed(
        session,
        update(Attempt)
        .where(Attempt.id == attempt_id, Attempt.status == Outcome.RUNNING)
        .values(
            status=ending.outcome,
            ended_at=now,
            error=ending.error,
            exit_code=ending.exit_code,
            report_hash=ending.report_hash,
        ),
    )
    kind, values = _consequence(task, ending, settings, now)
    if not closed or not move(
        session, kind, Task.id == task.id, Task.attempt == attempt.number, now=now, **values
    ):
        raise lease_lost(attempt_id)
    refresh_run(session, task.run_id, now)
    if RULES[kind].target in TERMINAL:
        hand_over(session, Source.id == task.id, now=now)
    return RULES[kind].target


def fenced(session: Session, attempt_id: str) -> tuple[Attempt, Task]:
    """The attempt and its task, if it is the one that may write.

    Raises:
        LeaseLostError: it ended, or the task went to another attempt.
    """
    row = session.execute(
        select(Attempt, Task)
        .join(Task, Task.id == Attempt.task_id)
        .where(
            Attempt.id == attempt_id,
            Attempt.status == Outcome.RUNNING,
            Task.attempt == Attempt.number,
            Task.status == State.RUNNING,
        )
        .with_for_update()
    ).one_or_none()
    if row is None:
        raise lease_lost(attempt_id)
    return row[0], row[1]


def lease_lost(attempt_id: str) -> LeaseLostError:
    return LeaseLostError(
        f"attempt {attempt_id} no longer owns its task", hint="stop the trainer and write nothing more"
    )


def _consequence(
    task: Task, ending: Ending, settings: Settings, now: datetime
) -> tuple[Move, dict[str, Any]]:
    if ending.outcome is Outcome.COMPLETED:
        return Move.COMPLETE, {**(ending.result or {}), "progress": 1.0, "error_message": None}
    if task.cancel_requested_at is not None or ending.outcome is Outcome.CANCELLED:
        return Move.CANCEL, {}
    if ending.outcome is Outcome.PREEMPTED:
        return _after_preemption(task, settings, now)
    return _after_error(task, ending, settings, now)


def _after_preemption(task: Task, settings: Settings, now: datetime) -> tuple[Move, dict[str, Any]]:
    preemptions = task.preemptions + 1
    if preemptions > settings.max_preemptions:
        error = f"preempted {preemptions} times, more than the {settings.max_preemptions} that are allowed"
        return Move.FAIL, {"preemptions": preemptions, "error_message": error}
    return Move.REQUEUE, {"preemptions": preemptions, "available_at": now}


def _after_error(
    task: Task, ending: Ending, settings: Settings, now: datetime
) -> tuple[Move, dict[str, Any]]:
    errors = task.errors + 1
    if not ending.retryable or errors >= settings.max_attempts:
        return Move.FAIL, {"errors": errors, "error_message": ending.error or "failed without a reason"}
    delay_s = settings.retry_delay_s * 2 ** (errors - 1)
    return Move.REQUEUE, {"errors": errors, "available_at": now + timedelta(seconds=delay_s)}


def expired_handles(session: Session, *, now: datetime) -> list[str | None]:
    """What `reap` would end, by the executor's handles: their processes should go first."""
    return list(session.scalars(select(Attempt.handle).where(*_expired(now))))


def reap(session: Session, *, settings: Settings, now: datetime) -> int:
    """End every attempt whose lease ran out; returns how many."""
    query = select(Attempt.id).where(*_expired(now)).with_for_update(skip_locked=True)
    expired = session.scalars(query).all()
    for attempt_id in expired:
        ending = Ending(outcome=Outcome.LOST, error=LEASE_RAN_OUT)
        end_attempt(session, attempt_id, ending, settings=settings, now=now)
    return len(expired)


def _expired(now: datetime) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return Attempt.status == Outcome.RUNNING, Attempt.lease_expires_at < now
