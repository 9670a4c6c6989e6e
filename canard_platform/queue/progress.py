"""The trainer's events: what a task's row and its curve take from them."""

import logging
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError
from sqlalchemy import delete, insert, update
from sqlalchemy.orm import Session

from canard.wire import EventBatch
from canard_platform.plain_json import storable_object
from canard_platform.queue.endings import fenced, lease_lost
from canard_platform.queue.moves import changed
from canard_platform.queue.states import Outcome
from canard_platform.store.tables import Attempt, Point, Task

log = logging.getLogger(__name__)

MOST_ITERATIONS = 10**9

Iteration = Annotated[int, Field(ge=0, le=MOST_ITERATIONS)]


class Started(BaseModel):
    """The trainer begins after `iteration` iterations that an earlier attempt, or checkpoint, has done."""

    iteration: Iteration = 0
    max_iterations: Iteration = 0


class Iterated(BaseModel):
    """One more iteration is done."""

    iteration: Iteration
    max_iterations: Iteration = 0
    mean_reward: float | None = None
    mean_episode_length: float | None = None


def record_events(session: Session, attempt_id: str, batch: EventBatch, *, now: datetime) -> int:
    """Take the events that are new; returns the number of the next one wanted.

    A batch seen before changes nothing; one that begins after the next wanted is not taken, and the answer
    says where to go on.
    """
    attempt, task = fenced(session, attempt_id)
    if batch.first_seq > attempt.next_seq:
        return attempt.next_seq
    fresh = batch.events[attempt.next_seq - batch.first_seq :]
    next_seq = attempt.next_seq + len(fresh)
    statement = (
        update(Attempt)
        .where(Attempt.id == attempt_id, Attempt.status == Outcome.RUNNING)
        .values(next_seq=next_seq)
    )
    if not changed(session, statement):
        raise lease_lost(attempt_id)
    number = attempt.number
    curve = _Curve(task, number)
    for event in fresh:
        curve.take(session, storable_object(event))
    curve.write(session)
    return next_seq


class _Curve:
    """Collects a batch for one task, then writes it in three statements whatever its length."""

    def __init__(self, task: Task, attempt: int) -> None:
        self._task_id = task.id
        self._attempt = attempt
        self._points: dict[int, dict[str, Any]] = {}
        self._columns: dict[str, Any] = {}
        self._first = task.first_mean_reward
        self._best = task.best_mean_reward

    def take(self, session: Session, event: dict[str, Any]) -> None:
        try:
            if event.get("event") == "started":
                self._start(session, Started.model_validate(event))
            elif event.get("event") == "iteration":
                self._iterate(Iterated.model_validate(event), event)
        except ValidationError as error:
            # It is the trainer's file, not the runner's request: refusing would stop the runner for ever.
            log.warning("task %s sent an event that cannot be read: %s", self._task_id, error)

    def _start(self, session: Session, started: Started) -> None:
        """What earlier attempts did beyond this iteration is not part of the policy any more."""
        self._points = {n: point for n, point in self._points.items() if n <= started.iteration}
        session.execute(
            delete(Point).where(Point.task_id == self._task_id, Point.iteration > started.iteration)
        )
        self._columns.update(_progress(started.iteration, started.max_iterations))
        if started.iteration == 0:
            self._first = self._best = None
            self._columns.update(mean_reward=None, mean_episode_length=None)

    def _iterate(self, done: Iterated, event: dict[str, Any]) -> None:
        numbers = {name: value for name, value in event.items() if name not in {"event", "time"}}
        self._points[done.iteration] = {
            "task_id": self._task_id,
            "iteration": done.iteration,
            "attempt": self._attempt,
            "mean_reward": done.mean_reward,
            "mean_episode_length": done.mean_episode_length,
            "numbers": numbers,
        }
        self._columns.update(_progress(done.iteration, done.max_iterations))
        self._columns.update(mean_reward=done.mean_reward, mean_episode_length=done.mean_episode_length)
        if done.mean_reward is not None:
            self._first = done.mean_reward if self._first is None else self._first
            self._best = done.mean_reward if self._best is None else max(self._best, done.mean_reward)

    def write(self, session: Session) -> None:
        if self._points:
            again = Point.iteration.in_(list(self._points))
            session.execute(delete(Point).where(Point.task_id == self._task_id, again))
            session.execute(insert(Point), list(self._points.values()))
        if self._columns:
            session.execute(
                update(Task)
                .where(Task.id == self._task_id, Task.attempt == self._attempt)
                .values(**self._columns, first_mean_reward=self._first, best_mean_reward=self._best)
            )


def _progress(iteration: int, max_iterations: int) -> dict[str, Any]:
    if max_iterations <= 0:
        return {"iteration": iteration}
    return {
        "iteration": iteration,
        "max_iterations": max_iterations,
        "progress": min(iteration / max_iterations, 1.0),
    }
