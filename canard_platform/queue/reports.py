"""The final report of an attempt: taken once, repeated safely, refused when its result is not there."""

import hashlib
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from canard.errors import InvalidRequestError
from canard.models import Float, Int, TaskMetrics
from canard.wire import AttemptReport
from canard_platform.plain_json import storable_object, storable_text
from canard_platform.queue.endings import Ending, end_attempt, fenced
from canard_platform.queue.progress import MOST_ITERATIONS
from canard_platform.queue.states import Outcome
from canard_platform.settings import Settings
from canard_platform.store.artifacts import artifact_of_path
from canard_platform.store.tables import Artifact, Attempt, Run, Task

PHYSICS_RESULT = "summary.json"


class Summary(BaseModel):
    """What the platform takes from summary.json; the names of the first five are the task's columns."""

    iteration: Annotated[Int, Field(ge=0, le=MOST_ITERATIONS)] | None = None
    mean_reward: Float | None = None
    first_mean_reward: Float | None = None
    best_mean_reward: Float | None = None
    mean_episode_length: Float | None = None

    best_checkpoint: str | None = None
    final_checkpoint: str | None = None
    task_metrics: TaskMetrics = Field(default_factory=TaskMetrics)

    def columns(self) -> dict[str, Any]:
        """Only what was said: a number that is left out stays what the last event made it."""
        said = self.model_fields_set - {"best_checkpoint", "final_checkpoint", "task_metrics"}
        return {
            name: getattr(self, name) for name in said if name != "iteration" or self.iteration is not None
        }


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
        error=None if report.error is None else storable_text(report.error),
        exit_code=report.exit_code,
        retryable=report.retryable,
        report_hash=report_hash,
        result=_result(session, task, report) if report.outcome == "completed" else None,
    )
    end_attempt(session, attempt_id, ending, settings=settings, now=now)


def _result(session: Session, task: Task, report: AttemptReport) -> dict[str, Any]:
    if report.summary is None:
        raise InvalidRequestError("summary: a completed attempt has one", field="summary")
    try:
        summary = Summary.model_validate(storable_object(report.summary))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in ("summary", *first["loc"]))
        raise InvalidRequestError(f"{field}: {first['msg']}", field=field) from None
    return {
        **summary.columns(),
        "metrics": summary.task_metrics.model_dump(mode="json"),
        "s3_key": _result_file(session, task, summary).key,
    }


def _result_file(session: Session, task: Task, summary: Summary) -> Artifact:
    """The best checkpoint of a training, the summary of a physics task."""
    is_training = session.scalar(select(Run.mode).where(Run.id == task.run_id)) == "training"
    path = (summary.best_checkpoint or summary.final_checkpoint) if is_training else PHYSICS_RESULT
    if path is None:
        raise InvalidRequestError("summary: names no checkpoint", field="summary.final_checkpoint")
    found = artifact_of_path(session, task.id, path)
    if found is None:
        field = "summary.best_checkpoint" if is_training else "summary"
        raise InvalidRequestError(
            f"{field}: {path[:200]!r} was not received", field=field, hint="upload it, then commit again"
        )
    return found
