"""The final report of an attempt: taken once, repeated safely, refused when its result is not there."""

import hashlib
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from canard.errors import InvalidRequestError
from canard.models import TaskMetrics
from canard.wire import AttemptReport
from canard_platform.queue.endings import Ending, end_attempt, fenced
from canard_platform.queue.progress import finite
from canard_platform.queue.states import Outcome
from canard_platform.settings import Settings
from canard_platform.store.artifacts import artifact_of_path
from canard_platform.store.tables import Artifact, Attempt, Run, Task

PHYSICS_RESULT = "summary.json"

CURRENT_NUMBERS = {
    "iteration": "iteration",
    "mean_reward": "mean_reward",
    "first_mean_reward": "first_mean_reward",
    "best_mean_reward": "best_mean_reward",
    "mean_episode_length": "mean_episode_length",
}
"""Columns of the task by the summary's names."""


def commit(
    session: Session, attempt_id: str, report: AttemptReport, *, settings: Settings, now: datetime
) -> None:
    """End the attempt as its runner says it ended.

    Raises:
        LeaseLostError: the attempt no longer owns its task.
        InvalidRequestError: it says "completed", but its result was not received.
    """
    report_hash = hashlib.sha256(report.model_dump_json().encode()).hexdigest()
    taken = session.scalar(select(Attempt.report_hash).where(Attempt.id == attempt_id))
    if taken == report_hash:
        return  # the answer to the first one got lost
    _, task = fenced(session, attempt_id)
    ending = Ending(
        outcome=Outcome(report.outcome),
        error=report.error,
        exit_code=report.exit_code,
        retryable=report.retryable,
        report_hash=report_hash,
        result=_result(session, task, report) if report.outcome == "completed" else None,
    )
    end_attempt(session, attempt_id, ending, settings=settings, now=now)


def _result(session: Session, task: Task, report: AttemptReport) -> dict[str, Any]:
    if report.summary is None:
        raise InvalidRequestError("summary: a completed attempt has one", field="summary")
    summary = finite(report.summary)
    try:
        metrics = TaskMetrics.model_validate(finite(summary.get("task_metrics") or {}))
        numbers = {
            column: _number(summary[name]) for name, column in CURRENT_NUMBERS.items() if name in summary
        }
    except (ValidationError, TypeError) as error:
        raise InvalidRequestError(f"summary: cannot be read ({error})", field="summary") from None
    numbers["iteration"] = int(numbers.get("iteration") or task.iteration)
    return {
        **numbers,
        "metrics": metrics.model_dump(mode="json"),
        "s3_key": _result_file(session, task, summary).key,
    }


def _result_file(session: Session, task: Task, summary: dict[str, Any]) -> Artifact:
    """The best checkpoint of a training, the summary of a physics task."""
    is_training = session.scalar(select(Run.mode).where(Run.id == task.run_id)) == "training"
    named = summary.get("best_checkpoint") or summary.get("final_checkpoint")
    path = named if is_training else PHYSICS_RESULT
    if not isinstance(path, str):
        raise InvalidRequestError("summary: names no checkpoint", field="summary.final_checkpoint")
    found = artifact_of_path(session, task.id, path)
    if found is None:
        field = "summary.best_checkpoint" if is_training else "summary"
        raise InvalidRequestError(
            f"{field}: {path[:200]!r} was not received", field=field, hint="upload it, then commit again"
        )
    return found


def _number(value: Any) -> float | None:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise TypeError(f"{value!r} is no number")
