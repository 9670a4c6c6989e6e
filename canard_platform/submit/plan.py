"""Expands a run and checks each member against this platform, before anything is stored."""

import hashlib
import json
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from canard import __version__
from canard.errors import InvalidRequestError
from canard.identity import content_identity
from canard.members import Member, count_members, members
from canard.models import MAX_SEED, RunConfig, TrainingConfig
from canard_platform.services import Services
from canard_platform.submit.checkpoints import resolve_checkpoints
from canard_platform.submit.code import Code, resolve_code
from canard_platform.submit.remotes import remote_commits


@dataclass(frozen=True, kw_only=True)
class TaskPlan:
    """One task to store."""

    member: Member
    fields: Mapping[str, Any]
    """The member's config as plain JSON."""
    gpu_count: int
    code_commit: str | None
    start_from: dict[str, Any] | None
    identity: str | None
    """None when the commit is not known yet."""


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    name: str
    config: RunConfig
    tasks: Sequence[TaskPlan]
    note: str | None = None
    """Why some members have no identity although results are to be reused."""

    @property
    def fingerprint(self) -> str | None:
        """The same for runs of one name with the same members; None when some have no identity."""
        identities = [task.identity for task in self.tasks]
        if None in identities:
            return None
        return hashlib.sha256(json.dumps([self.name, identities]).encode()).hexdigest()


def plan_run(services: Services, name: str, config: RunConfig, *, user_id: int) -> RunPlan:
    """Every member, or the error of the first that cannot be.

    Raises:
        InvalidRequestError: naming the field.
    """
    _refuse_too_many(config, services.settings.max_members)
    if config.num_samples is not None and config.sample_seed is None:
        config = config.model_copy(update={"sample_seed": secrets.randbelow(MAX_SEED + 1)})
    expanded = list(members(config))
    _refuse_larger(expanded, max((node.gpus for node in services.executor.capacity()), default=0))
    local_paths = services.executor.allows_local_paths
    commits, note = _commits(expanded, look=config.reuse, local_paths=local_paths)
    # A sweep names few repositories and checkpoints many times: each is looked at once.
    checkpoints = resolve_checkpoints(
        services.database,
        dict.fromkeys(url for member in expanded if (url := _checkpoint_url(member)) is not None),
        user_id=user_id,
        local_paths=local_paths,
    )
    tasks = [_task_plan(member, config.mode, commits, checkpoints) for member in expanded]
    return RunPlan(name=name, config=config, tasks=tasks, note=note)


def _commits(
    expanded: Iterable[Member], *, look: bool, local_paths: bool
) -> tuple[Mapping[Code, str | None], str | None]:
    """The commits that are known by now, and a line on those that were looked for in vain.

    Args:
        look: whether remote repositories are asked.
    """
    counts = Counter(code for member in expanded if (code := _code(member)) is not None)
    commits = {code: resolve_code(code, local_paths=local_paths) for code in counts}
    unknown = [code for code, commit in commits.items() if commit is None]
    if not look or not unknown:
        return commits, None
    found = remote_commits(unknown, local_paths=local_paths)
    commits |= {code: one.commit for code, one in found.items()}
    problems = {code: one.problem for code, one in found.items() if one.problem is not None}
    if not problems:
        return commits, None
    number = sum(counts[code] for code in problems)
    what = "1 member is" if number == 1 else f"{number:,} members are"
    reasons = list(dict.fromkeys(problems.values()))
    more = f"; and {len(reasons) - 1} more reasons" if len(reasons) > 1 else ""
    return commits, f"{what} trained without looking for earlier results: {reasons[0]}{more}"


def _task_plan(
    member: Member,
    mode: str,
    commits: Mapping[Code, str | None],
    checkpoints: Mapping[str, dict[str, Any]],
) -> TaskPlan:
    config = member.config
    fields = config.model_dump()
    code, url = _code(member), _checkpoint_url(member)
    commit = commits[code] if code is not None else None
    start_from = checkpoints[url] if url is not None else None
    identity = None
    if code is None or commit is not None:
        identity = content_identity(
            fields,
            mode=mode,
            version=__version__,
            commit=commit,
            checkpoint=start_from["sha256"] if start_from is not None else None,
        )
    return TaskPlan(
        member=member,
        fields=fields,
        gpu_count=config.gpu_count if isinstance(config, TrainingConfig) else 1,
        code_commit=commit,
        start_from=start_from,
        identity=identity,
    )


def _code(member: Member) -> Code | None:
    config = member.config
    return None if config.code_url is None else Code(url=config.code_url, ref=config.code_ref)


def _checkpoint_url(member: Member) -> str | None:
    return member.config.checkpoint_url if isinstance(member.config, TrainingConfig) else None


def _refuse_too_many(config: RunConfig, most: int) -> None:
    count = count_members(config)
    if count > most:
        field = "tasks" if config.tasks is not None else "sweep_configs"
        raise InvalidRequestError(
            f"{field}: {count} tasks, more than the {most} that one run may have",
            field=f"config.{field}",
            hint="split the sweep, or draw from it with num_samples",
        )


def _refuse_larger(expanded: Iterable[Member], largest: int) -> None:
    for member in expanded:
        gpu_count = member.config.gpu_count if isinstance(member.config, TrainingConfig) else 1
        if largest and gpu_count > largest:
            raise InvalidRequestError(
                f"gpu_count: {gpu_count}, this platform's largest machine has {largest} GPUs",
                field="gpu_count",
            )
