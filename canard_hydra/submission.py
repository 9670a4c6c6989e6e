"""submission.json beside multirun.yaml: what is sent where, written before it is sent and after the answer.

A command that died in between and is given again in the same folder sends the same request under the same
key, so that it comes back to its run and makes no second one.
"""

import hashlib
import json
import os
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from canard.models import Run
from canard.wire import SubmittedRun
from canard_hydra.errors import ExperimentError
from canard_hydra.experiment import Experiment


class Submission(BaseModel):
    """The content of the file."""

    name: str
    api_url: str
    idempotency_key: str
    sent_at: datetime
    config_sha256: str
    run: str | None = None
    """None until the platform has answered."""
    dashboard_url: str | None = None
    submitted_as: str | None = None
    num_tasks: int
    reused: dict[int, str] = Field(default_factory=dict)
    """By member: the task whose result it has or waits for."""
    earlier_runs: list[str] = Field(default_factory=list)
    """Of other submits from the same folder."""
    config: dict[str, Any]
    """The RunConfig: the base and the tasks' deltas."""


def prepare(experiment: Experiment, *, api_url: str) -> Submission:
    """What is about to be sent; on disk when this returns.

    Raises:
        ExperimentError: it cannot be written.
    """
    config = experiment.run.model_dump(mode="json", exclude_none=True)
    sha256 = hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()
    before = _read(experiment.record)
    identity = (experiment.name, api_url, sha256)
    unanswered = (
        before is not None
        and before.run is None
        and (before.name, before.api_url, before.config_sha256) == identity
    )
    submission = Submission(
        name=experiment.name,
        api_url=api_url,
        idempotency_key=before.idempotency_key if before is not None and unanswered else str(uuid.uuid4()),
        sent_at=datetime.now(UTC),
        config_sha256=sha256,
        num_tasks=len(experiment.configs),
        earlier_runs=_runs(before),
        config=config,
    )
    _write(experiment.record, submission)
    return submission


def keep_answer(experiment: Experiment, submission: Submission, run: Run) -> None:
    """
    Raises:
        ExperimentError: it cannot be written.
    """
    answer: dict[str, Any] = {"run": run.slug, "dashboard_url": run.dashboard_url}
    if isinstance(run, SubmittedRun):
        reused = {member.index: member.source for member in run.reuse.members}
        answer |= {"submitted_as": run.submitted_as, "reused": reused}
    answered = submission.model_copy(update=answer)
    _write(experiment.record, answered)


def _runs(before: Submission | None) -> list[str]:
    if before is None:
        return []
    return [*before.earlier_runs, *([before.run] if before.run is not None else [])]


def _read(file: Path) -> Submission | None:
    """None when there is none, or somebody else's."""
    try:
        return Submission.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None


def _write(file: Path, submission: Submission) -> None:
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("w", encoding="utf-8") as stream:
            stream.write(submission.model_dump_json(indent=1) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(file)
    except OSError as error:
        raise ExperimentError(
            f"{file}: cannot be written ({error.strerror}); it tells a later command what was submitted"
        ) from None
