"""Which members need no training of their own: the same was trained before, or is in another run."""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, and_, or_, select
from sqlalchemy.orm import Session

from canard.wire import Reuse, ReusedMember
from canard_platform.queue.followers import RESULT, Source, result_of
from canard_platform.queue.states import State
from canard_platform.store.tables import Run, Task
from canard_platform.submit.plan import RunPlan

ACTIVE = (State.QUEUED, State.RUNNING)
AT_ONCE = 10_000
"""Identities in one query; both databases take more."""

Sources = Mapping[int, Row[Any]]
"""By index of the member: the task whose result it has or follows, with `run_slug`."""


def find_sources(session: Session, plan: RunPlan, *, user_id: int, lock: bool) -> Sources:
    """For each member that has one, a task of this user with the same identity: completed rather than active,
    of the newest run.

    Members without a seed are different draws of the same thing, so no two of them share a source.

    Args:
        lock: keep the sources from ending until this transaction has.
    """
    wanted = list(dict.fromkeys(task.identity for task in plan.tasks if task.identity is not None))
    found: dict[str, deque[Row[Any]]] = defaultdict(deque)
    for start in range(0, len(wanted), AT_ONCE):
        for row in session.execute(_query(user_id, wanted[start : start + AT_ONCE], lock=lock)):
            found[row.identity].append(row)
    sources = {}
    for task in plan.tasks:
        if task.identity is not None and (rows := found.get(task.identity)):
            is_a_draw = task.member.config.seed is None
            sources[task.member.index] = rows.popleft() if is_a_draw else rows[0]
    return sources


def active_twin(session: Session, plan: RunPlan, *, user_id: int) -> Row[int, str] | None:
    """Id and slug of a run of the same name and members that has not ended, and that nobody wants to end."""
    fingerprint = plan.fingerprint
    if fingerprint is None:
        return None
    cancelled = select(Task.id).where(
        Task.run_id == Run.id, Task.status == State.RUNNING, Task.cancel_requested_at.is_not(None)
    )
    query = (
        select(Run.id, Run.slug)
        .where(
            Run.user_id == user_id,
            Run.fingerprint == fingerprint,
            Run.status.in_(ACTIVE),
            ~cancelled.exists(),
        )
        .order_by(Run.id.desc())
        .limit(1)
    )
    return session.execute(query).one_or_none()


def reuse_of(plan: RunPlan, sources: Sources) -> Reuse:
    """The same for people."""
    members = [
        ReusedMember(index=index, source=f"{row.run_slug}/{row.index}", is_done=row.status == State.COMPLETED)
        for index, row in sources.items()
    ]
    return Reuse(members=members, note=plan.note)


def reuse_in(session: Session, run: Run) -> Reuse:
    """Of a run that is there."""
    rows = session.execute(
        select(Task.index, Task.status, Run.slug, Source.index.label("source_index"))
        .join(Source, Source.id == Task.source_id)
        .join(Run, Run.id == Source.run_id)
        .where(Task.run_id == run.id)
        .order_by(Task.index)
    )
    members = [
        ReusedMember(
            index=row.index, source=f"{row.slug}/{row.source_index}", is_done=row.status == State.COMPLETED
        )
        for row in rows
    ]
    return Reuse(members=members, note=run.reuse_note)


def columns_with(source: Row[Any], now: datetime) -> dict[str, Any]:
    """What is different in the row of a member with a source."""
    if source.status == State.COMPLETED:
        return {
            **result_of(source),
            "source_id": source.id,
            "status": State.COMPLETED,
            "completed_at": now,
        }
    return {"source_id": source.id}


NO_RESULT: Mapping[str, Any] = {
    **dict.fromkeys((*RESULT, "error_message", "source_id", "completed_at")),
    "progress": 0.0,
    "iteration": 0,
}
"""What those columns are in the row of a member without one."""


def _query(user_id: int, identities: Sequence[str], *, lock: bool) -> Any:
    is_wanted = or_(
        Task.status == State.COMPLETED, and_(Task.status.in_(ACTIVE), Task.cancel_requested_at.is_(None))
    )
    query = (
        select(
            Task.id,
            Task.identity,
            Task.index,
            Task.status,
            Run.slug.label("run_slug"),
            *(getattr(Task, name) for name in RESULT),
        )
        .join(Run, Run.id == Task.run_id)
        .where(Task.user_id == user_id, Task.source_id.is_(None), Task.identity.in_(identities), is_wanted)
        .order_by((Task.status == State.COMPLETED).desc(), Task.run_id.desc(), Task.index)
    )
    return query.with_for_update(of=Task, read=True) if lock else query
