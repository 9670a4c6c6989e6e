"""Followers: queued tasks that wait for a task of another run with the same content, and nobody claims.

When the source completes they take its result over. When it ends without one, the oldest of them is trained
in its place and the others follow that one, so that the same thing is never trained twice at once.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, Row, bindparam, select, update
from sqlalchemy.orm import Session, aliased

from canard_platform.queue.moves import move, refresh_run
from canard_platform.queue.states import TERMINAL, Move, State
from canard_platform.store.tables import Task

Source = aliased(Task, name="source")

RESULT = (
    "s3_key",
    "metrics",
    "iteration",
    "max_iterations",
    "mean_reward",
    "first_mean_reward",
    "best_mean_reward",
    "mean_episode_length",
    "code_commit",
)
"""Columns of a task that are its result; its files and its curve are found through `source_id`."""


def result_of(source: Row[Any]) -> dict[str, Any]:
    """What a task that takes the result of `source` has in its columns."""
    return {**{name: getattr(source, name) for name in RESULT}, "progress": 1.0, "error_message": None}


def hand_over(session: Session, *sources: ColumnElement[bool], now: datetime) -> None:
    """Move the followers of those sources that have ended; a few statements, whatever their number.

    Args:
        sources: conditions on `Source`.
    """
    followers = session.execute(
        select(
            Task.id.label("follower_id"),
            Task.run_id.label("follower_run_id"),
            Source.id.label("source_id"),
            Source.status,
            *(getattr(Source, name) for name in RESULT),
        )
        .join(Source, Source.id == Task.source_id)
        .where(Task.status == State.QUEUED, Source.status.in_(TERMINAL), *sources)
        .order_by(Source.id, Task.id)
        .with_for_update(of=Task)
    ).all()
    without_result: list[tuple[int, int | None]] = []
    for _, of_source in groupby(followers, key=lambda row: row.source_id):
        waiting = list(of_source)
        if waiting[0].status == State.COMPLETED:
            _take_over(session, waiting, now)
        else:
            without_result += _in_its_place([row.follower_id for row in waiting])
    _follow(session, without_result)
    for run_id in {row.follower_run_id for row in followers}:
        refresh_run(session, run_id, now)


def _take_over(session: Session, waiting: Sequence[Row[Any]], now: datetime) -> None:
    ids = [row.follower_id for row in waiting]
    source = waiting[0]
    move(
        session,
        Move.TAKE_OVER,
        Task.id.in_(ids),
        Task.source_id == source.source_id,
        now=now,
        **result_of(source),
    )


def _in_its_place(waiting: Sequence[int]) -> list[tuple[int, int | None]]:
    """Whom each of the followers of one source follows now; the first nobody: it is trained."""
    first, *others = waiting
    return [(first, None), *((other, first) for other in others)]


def _follow(session: Session, pairs: Sequence[tuple[int, int | None]]) -> None:
    if not pairs:
        return
    table = Task.__table__
    statement = (
        update(table)  # type: ignore[arg-type]
        .where(table.c.id == bindparam("follower"), table.c.status == State.QUEUED)
        .values(source_id=bindparam("followed"))
    )
    session.execute(statement, [{"follower": one, "followed": other} for one, other in pairs])
