"""What a running attempt may do besides ending: prove who it is, begin, and stay alive."""

from datetime import datetime, timedelta
from typing import Literal

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from canard.errors import AuthenticationError
from canard.wire import Heartbeat
from canard_platform.queue.endings import fenced, lease_lost
from canard_platform.queue.moves import changed
from canard_platform.queue.states import Outcome
from canard_platform.queue.tokens import same_hash, token_hash
from canard_platform.store.tables import Attempt, Task


def authenticate_attempt(session: Session, attempt_id: str, token: str) -> None:
    """Raises AuthenticationError unless the token is this attempt's own."""
    kept = session.scalar(select(Attempt.token_hash).where(Attempt.id == attempt_id))
    if kept is None or not same_hash(kept, token_hash(token)):
        raise AuthenticationError("this is not the token of the attempt")


def start(session: Session, attempt_id: str, *, lease_s: float, now: datetime) -> tuple[Attempt, Task]:
    """The runner is there; asked again (its answer got lost) it says the same."""
    attempt, task = fenced(session, attempt_id)
    _renew(session, attempt_id, lease_s, now, started_at=attempt.started_at or now)
    return attempt, task


def heartbeat(
    session: Session, attempt_id: str, beat: Heartbeat, *, lease_s: float, now: datetime
) -> Literal["cancel", "preempt"] | None:
    """Renew the lease; returns why the trainer must stop, if it must."""
    _, task = fenced(session, attempt_id)
    _renew(session, attempt_id, lease_s, now, phase=beat.phase)
    if task.cancel_requested_at is not None:
        return "cancel"
    if beat.code_commit is None:
        return None
    if task.code_commit is None:
        _pin(session, task, beat.code_commit)
        return None
    # The branch moved between two checkouts of one run: hand back, and come again with the pinned commit.
    return None if task.code_commit == beat.code_commit else "preempt"


def _renew(session: Session, attempt_id: str, lease_s: float, now: datetime, **values: object) -> None:
    statement = (
        update(Attempt)
        .where(Attempt.id == attempt_id, Attempt.status == Outcome.RUNNING)
        .values(lease_expires_at=now + timedelta(seconds=lease_s), **values)
    )
    if not changed(session, statement):
        raise lease_lost(attempt_id)


def _pin(session: Session, task: Task, commit: str) -> None:
    """All tasks of the run that named the same code use the same commit from now on."""
    session.execute(
        update(Task)
        .where(
            Task.run_id == task.run_id,
            Task.code_url == task.code_url,
            Task.code_ref.is_not_distinct_from(task.code_ref),
            Task.code_commit.is_(None),
        )
        .values(code_commit=commit)
    )
