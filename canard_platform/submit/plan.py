"""Expands a run and checks each member against this platform, before anything is stored."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy.orm import Session

from canard.errors import InvalidRequestError
from canard.members import Member, count_members, members
from canard.models import MAX_SEED, RunConfig, TrainingConfig
from canard_platform.executors.executor import Node
from canard_platform.services import Services
from canard_platform.submit.checkpoints import resolve_checkpoint
from canard_platform.submit.code import Code, resolve_code


@dataclass(frozen=True, kw_only=True)
class TaskPlan:
    """One task to store."""

    member: Member
    gpu_count: int
    code_commit: str | None
    start_from: dict[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    config: RunConfig
    tasks: Sequence[TaskPlan]


def plan_run(services: Services, config: RunConfig, *, user_id: int) -> RunPlan:
    """Every member, or the error of the first that cannot be.

    Raises:
        InvalidRequestError: naming the field.
    """
    _refuse_too_many(config, services.settings.max_members)
    if config.num_samples is not None and config.sample_seed is None:
        config = config.model_copy(update={"sample_seed": secrets.randbelow(MAX_SEED + 1)})
    expanded = list(members(config))
    nodes = services.executor.capacity()
    with services.database.read() as session:
        tasks = _checked(services, session, expanded, nodes, user_id)
    return RunPlan(config=config, tasks=tasks)


def _checked(
    services: Services, session: Session, expanded: Sequence[Member], nodes: Sequence[Node], user_id: int
) -> list[TaskPlan]:
    """A sweep names few repositories and checkpoints many times: each is looked at once."""
    local_paths = services.executor.allows_local_paths
    largest = max((node.gpus for node in nodes), default=0)

    @cache
    def commit(code: Code) -> str | None:
        return resolve_code(code, local_paths=local_paths)

    @cache
    def checkpoint(url: str) -> dict[str, Any]:
        return resolve_checkpoint(session, url, user_id=user_id, local_paths=local_paths)

    tasks = []
    for member in expanded:
        config = member.config
        gpu_count, url = 1, None
        if isinstance(config, TrainingConfig):
            gpu_count, url = config.gpu_count, config.checkpoint_url
        _refuse_larger(gpu_count, largest)
        tasks.append(
            TaskPlan(
                member=member,
                gpu_count=gpu_count,
                code_commit=commit(Code(url=config.code_url, ref=config.code_ref))
                if config.code_url is not None
                else None,
                start_from=checkpoint(url) if url is not None else None,
            )
        )
    return tasks


def _refuse_too_many(config: RunConfig, most: int) -> None:
    count = count_members(config)
    if count > most:
        field = "tasks" if config.tasks is not None else "sweep_configs"
        raise InvalidRequestError(
            f"{field}: {count} tasks, more than the {most} that one run may have",
            field=f"config.{field}",
            hint="split the sweep, or draw from it with num_samples",
        )


def _refuse_larger(gpu_count: int, largest: int) -> None:
    if largest and gpu_count > largest:
        raise InvalidRequestError(
            f"gpu_count: {gpu_count}, this platform's largest machine has {largest} GPUs", field="gpu_count"
        )
