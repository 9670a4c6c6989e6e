"""Claiming: one queued task becomes one attempt with a lease and a fencing token, in one transaction."""

import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from canard_platform.queue.moves import changed, move, refresh_run
from canard_platform.queue.states import Move, Outcome, State
from canard_platform.queue.tokens import new_token, token_hash
from canard_platform.store.tables import DEFAULT_QUEUE, Attempt, Task


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What an executor needs to place the attempt; the token is never seen again."""

    attempt_id: str
    token: str = field(repr=False)
    task_id: int
    number: int
    gpu_count: int


def claim(
    session: Session,
    *,
    worker_id: str,
    largest_gpu_count: int,
    lease_s: float,
    now: datetime,
    queue: str = DEFAULT_QUEUE,
) -> Claim | None:
    """The next task that fits, as a running attempt; None when there is none.

    Safe with any number of claimers: SQLite's immediate transaction admits one at a time, PostgreSQL skips
    the rows that another has locked, and the guarded move settles the rest.
    """
    found = session.execute(
        select(Task.id, Task.run_id, Task.attempt, Task.gpu_count, Task.started_at)
        .where(
            Task.status == State.QUEUED,
            Task.source_id.is_(None),
            Task.queue == queue,
            Task.gpu_count <= largest_gpu_count,
            Task.available_at <= now,
        )
        .order_by(Task.priority.desc(), Task.id)
        .limit(1)
        .with_for_update(skip_locked=True)
    ).one_or_none()
    if found is None:
        return None
    number = found.attempt + 1
    values = {"attempt": number, "worker_id": worker_id, "started_at": found.started_at or now}
    if not move(session, Move.CLAIM, Task.id == found.id, Task.attempt == found.attempt, now=now, **values):
        return None
    claimed = Claim(
        attempt_id=f"att_{secrets.token_hex(8)}",
        token=new_token("attempt"),
        task_id=found.id,
        number=number,
        gpu_count=found.gpu_count,
    )
    session.add(
        Attempt(
            id=claimed.attempt_id,
            task_id=found.id,
            number=number,
            token_hash=token_hash(claimed.token),
            status=Outcome.RUNNING,
            worker_id=worker_id,
            lease_expires_at=now + timedelta(seconds=lease_s),
            claimed_at=now,
        )
    )
    session.flush()
    refresh_run(session, found.run_id, now)
    return claimed


def launched(session: Session, attempt_id: str, handle: str) -> bool:
    """Record where the executor put it; False when the attempt ended meanwhile."""
    statement = (
        update(Attempt)
        .where(Attempt.id == attempt_id, Attempt.status == Outcome.RUNNING)
        .values(handle=handle)
    )
    return changed(session, statement) == 1
