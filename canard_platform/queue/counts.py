"""How many tasks are where."""

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from canard_platform.queue.states import Outcome, State
from canard_platform.store.tables import Attempt, Task


def count_by_status(session: Session) -> dict[str, int]:
    query = select(Task.status, func.count()).group_by(Task.status)
    return {row[0]: row[1] for row in session.execute(query)}


def has_work(session: Session) -> bool:
    """Whether anything is queued or running."""
    queued = select(Task.id).where(Task.status.in_((State.QUEUED, State.RUNNING))).limit(1)
    running = select(Attempt.id).where(Attempt.status == Outcome.RUNNING).limit(1)
    return session.scalar(queued) is not None or session.scalar(running) is not None
