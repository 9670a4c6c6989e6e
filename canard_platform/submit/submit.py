"""Stores a planned run: one transaction, and the same run again for the same idempotency key."""

import hashlib
import secrets
import string
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from canard.errors import ConflictError
from canard.models import TrainingConfig
from canard.wire import RunCreate, RunPreview
from canard_platform.plain_json import refuse_unstorable
from canard_platform.queue.states import State, run_state
from canard_platform.services import Services
from canard_platform.store.tables import IdempotencyKey, Run, Task
from canard_platform.store.users import Caller, lock_user
from canard_platform.submit.plan import RunPlan, TaskPlan, plan_run
from canard_platform.submit.reuse import (
    NO_RESULT,
    Sources,
    active_twin,
    columns_with,
    find_sources,
    reuse_of,
)

SLUG_ALPHABET = string.ascii_lowercase + string.digits


class Arrival(StrEnum):
    """What became of a submit; the values are the API's."""

    NEW = "new"
    REPEATED = "repeated"
    ACTIVE = "active"


@dataclass(frozen=True, kw_only=True)
class Submitted:
    run_id: int
    slug: str
    arrival: Arrival


def submit_run(services: Services, caller: Caller, body: RunCreate, idempotency_key: str | None) -> Submitted:
    """The run, on disk with all its tasks when this returns.

    With `reuse`, the very same run that has not ended yet is not made a second time.

    Raises:
        InvalidRequestError: naming the field.
        ConflictError: the key was used with another body.
    """
    _refuse_unstorable(body)
    body_hash = hashlib.sha256(body.model_dump_json(exclude_unset=True).encode()).hexdigest()
    earlier = _earlier(services, caller, idempotency_key, body_hash)
    if earlier is not None:
        return earlier
    plan = plan_run(services, body.name, body.config, user_id=caller.user_id)
    now = services.clock.now()
    try:
        with services.database.write() as session:
            submitted = _found_or_stored(session, caller, plan, now)
            if idempotency_key is not None:
                session.add(
                    IdempotencyKey(
                        user_id=caller.user_id,
                        key=idempotency_key,
                        body_hash=body_hash,
                        run_id=submitted.run_id,
                        created_at=now,
                    )
                )
                session.flush()
    except IntegrityError:
        # The same request, sent twice at once: the other one was first.
        earlier = _earlier(services, caller, idempotency_key, body_hash)
        if earlier is None:
            raise
        return earlier
    services.work.set()
    return submitted


def preview_run(services: Services, caller: Caller, body: RunCreate) -> RunPreview:
    """What `submit_run` would do now, and refuse for the same reasons.

    Raises:
        InvalidRequestError: naming the field.
    """
    _refuse_unstorable(body)
    plan = plan_run(services, body.name, body.config, user_id=caller.user_id)
    if not plan.config.reuse:
        return RunPreview(num_tasks=len(plan.tasks))
    with services.database.read() as session:
        sources = find_sources(session, plan, user_id=caller.user_id, lock=False)
        twin = active_twin(session, plan, user_id=caller.user_id)
    return RunPreview(
        num_tasks=len(plan.tasks),
        reuse=reuse_of(plan, sources),
        active_run=None if twin is None else twin.slug,
    )


def _refuse_unstorable(body: RunCreate) -> None:
    """The free-form parts first: what is nested too deep cannot be dumped either."""
    config = body.config
    for index, sweep in enumerate(config.sweep_configs or ()):
        refuse_unstorable(sweep.values, f"config.sweep_configs.{index}.values")
    refuse_unstorable(config.tasks, "config.tasks")
    refuse_unstorable(body.model_dump(), "")


def _earlier(services: Services, caller: Caller, key: str | None, body_hash: str) -> Submitted | None:
    if key is None:
        return None
    with services.database.read() as session:
        row = session.execute(
            select(IdempotencyKey.body_hash, Run.id, Run.slug)
            .join(Run, Run.id == IdempotencyKey.run_id)
            .where(IdempotencyKey.user_id == caller.user_id, IdempotencyKey.key == key)
        ).one_or_none()
    if row is None:
        return None
    if row.body_hash != body_hash:
        raise ConflictError(
            f"this Idempotency-Key was used for run {row.slug}, with another body",
            hint="use a new key for a new run",
        )
    return Submitted(run_id=row.id, slug=row.slug, arrival=Arrival.REPEATED)


def _found_or_stored(session: Session, caller: Caller, plan: RunPlan, now: datetime) -> Submitted:
    sources: Sources = {}
    if plan.config.reuse:
        lock_user(session, caller.user_id)  # of two such submits at once, the second sees the first
        twin = active_twin(session, plan, user_id=caller.user_id)
        if twin is not None:
            return Submitted(run_id=twin.id, slug=twin.slug, arrival=Arrival.ACTIVE)
        sources = find_sources(session, plan, user_id=caller.user_id, lock=True)
    run = _store(session, caller, plan, sources, now)
    return Submitted(run_id=run.id, slug=run.slug, arrival=Arrival.NEW)


def _store(session: Session, caller: Caller, plan: RunPlan, sources: Sources, now: datetime) -> Run:
    config = plan.config.model_dump(mode="json", exclude_unset=True)
    explicit = config.pop("tasks", None) is not None
    done = sum(source.status == State.COMPLETED for source in sources.values())
    states = {State.COMPLETED: done, State.QUEUED: len(plan.tasks) - done}
    run = Run(
        slug=_free_slug(session),
        user_id=caller.user_id,
        name=plan.name,
        mode=plan.config.mode,
        config=config,
        explicit_tasks=explicit,
        num_tasks=len(plan.tasks),
        status=run_state(states),
        created_at=now,
        updated_at=now,
        fingerprint=plan.fingerprint,
        reuse_note=plan.note,
    )
    session.add(run)
    session.flush()
    rows = [_task_row(run, task, now) for task in plan.tasks]
    if sources:  # all rows of an INSERT have the same columns
        own = [columns_with(sources[row["index"]], now) if row["index"] in sources else {} for row in rows]
        rows = [{**NO_RESULT, **row, **columns} for row, columns in zip(rows, own, strict=True)]
    # The table and not the class: the ORM's bookkeeping costs as much as the rows.
    session.connection().execute(insert(Task.__table__), rows)  # type: ignore[arg-type]
    return run


def _task_row(run: Run, task: TaskPlan, now: datetime) -> dict[str, Any]:
    config = task.member.config
    return {
        "run_id": run.id,
        "user_id": run.user_id,
        "index": task.member.index,
        "params": task.member.params,
        "config": task.fields,
        "code_url": config.code_url,
        "code_ref": config.code_ref,
        "code_commit": task.code_commit,
        "start_from": task.start_from,
        "identity": task.identity,
        "gpu_count": task.gpu_count,
        "status": State.QUEUED,
        "available_at": now,
        "created_at": now,
        "max_iterations": config.max_iterations if isinstance(config, TrainingConfig) else 0,
    }


def _free_slug(session: Session) -> str:
    while True:
        slug = "run_" + "".join(secrets.choice(SLUG_ALPHABET) for _ in range(8))
        if session.scalar(select(Run.id).where(Run.slug == slug)) is None:
            return slug
