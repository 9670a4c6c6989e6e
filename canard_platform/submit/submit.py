"""Stores a planned run: one transaction, and the same run again for the same idempotency key."""

import hashlib
import secrets
import string
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from canard.errors import ConflictError
from canard.models import TrainingConfig
from canard.wire import RunCreate
from canard_platform.plain_json import refuse_unstorable
from canard_platform.queue.states import State
from canard_platform.services import Services
from canard_platform.store.tables import IdempotencyKey, Run, Task
from canard_platform.store.users import Caller
from canard_platform.submit.plan import RunPlan, TaskPlan, plan_run

SLUG_ALPHABET = string.ascii_lowercase + string.digits


@dataclass(frozen=True, kw_only=True)
class Submitted:
    slug: str
    is_new: bool


def submit_run(services: Services, caller: Caller, body: RunCreate, idempotency_key: str | None) -> Submitted:
    """The run, on disk with all its tasks when this returns.

    Raises:
        InvalidRequestError: naming the field.
        ConflictError: the key was used with another body.
    """
    _refuse_unstorable(body)
    body_hash = hashlib.sha256(body.model_dump_json(exclude_unset=True).encode()).hexdigest()
    earlier = _earlier(services, caller, idempotency_key, body_hash)
    if earlier is not None:
        return earlier
    plan = plan_run(services, body.config, user_id=caller.user_id)
    try:
        with services.database.write() as session:
            run = _store(session, caller, body.name, plan, services.clock.now())
            if idempotency_key is not None:
                session.add(
                    IdempotencyKey(
                        user_id=caller.user_id,
                        key=idempotency_key,
                        body_hash=body_hash,
                        run_id=run.id,
                        created_at=run.created_at,
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
    return Submitted(slug=run.slug, is_new=True)


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
            select(IdempotencyKey.body_hash, Run.slug)
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
    return Submitted(slug=row.slug, is_new=False)


def _store(session: Session, caller: Caller, name: str, plan: RunPlan, now: datetime) -> Run:
    config = plan.config.model_dump(mode="json", exclude_unset=True)
    explicit = config.pop("tasks", None) is not None
    run = Run(
        slug=_free_slug(session),
        user_id=caller.user_id,
        name=name,
        mode=plan.config.mode,
        config=config,
        explicit_tasks=explicit,
        num_tasks=len(plan.tasks),
        status=State.QUEUED,
        created_at=now,
        updated_at=now,
    )
    session.add(run)
    session.flush()
    session.execute(insert(Task), [_task_row(run.id, task, now) for task in plan.tasks])
    return run


def _task_row(run_id: int, task: TaskPlan, now: datetime) -> dict[str, Any]:
    config = task.member.config
    return {
        "run_id": run_id,
        "index": task.member.index,
        "params": task.member.params,
        "config": config.model_dump(mode="json"),
        "code_url": config.code_url,
        "code_ref": config.code_ref,
        "code_commit": task.code_commit,
        "start_from": task.start_from,
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
