"""Applying the table of states: guarded updates, and the run's status that follows from its tasks."""

from datetime import datetime
from typing import Any, cast

from sqlalchemy import ColumnElement, CursorResult, Executable, func, select, update
from sqlalchemy.orm import Session

from canard_platform.queue.states import RULES, TERMINAL, Move, State, run_state
from canard_platform.store.tables import Run, Task


def changed(session: Session, statement: Executable) -> int:
    """How many rows a guarded statement changed; none means somebody else owns them."""
    return cast("CursorResult[Any]", session.execute(statement)).rowcount


def move(session: Session, kind: Move, *guards: ColumnElement[bool], now: datetime, **values: Any) -> int:
    """Move every task that the guards name and the table allows; returns how many moved."""
    rule = RULES[kind]
    if rule.target in TERMINAL:
        values["completed_at"] = now
    return changed(
        session,
        update(Task).where(Task.status.in_(rule.sources), *guards).values(status=rule.target, **values),
    )


def refresh_run(session: Session, run_id: int, now: datetime) -> None:
    """Derive the run's status from its tasks; every transaction that moved one ends with this.

    The run's row is locked first: of two transactions that move its last two tasks at once, the second counts
    what the first has done.
    """
    session.execute(select(Run.id).where(Run.id == run_id).with_for_update())
    rows = session.execute(
        select(Task.status, func.count()).where(Task.run_id == run_id).group_by(Task.status)
    )
    counts = {State(status): count for status, count in rows}
    session.execute(update(Run).where(Run.id == run_id).values(status=run_state(counts), updated_at=now))
