"""Whatever happens in whatever order: one result at most, no stale writes, final ends, no lost follower."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule
from sqlalchemy import delete, func, insert, select
from stage import ManualClock

from canard.errors import ConflictError, LeaseLostError
from canard.wire import AttemptReport, EventBatch, Heartbeat
from canard_platform.queue import leases, reports, requests
from canard_platform.queue.claims import claim
from canard_platform.queue.endings import Ending, end_attempt, fenced, reap
from canard_platform.queue.progress import record_events
from canard_platform.queue.states import RULES, Move, Outcome, State
from canard_platform.settings import Settings
from canard_platform.store.database import Database
from canard_platform.store.migrate import migrate
from canard_platform.store.tables import Artifact, Attempt, Base, Point, Run, Task
from canard_platform.store.users import ensure_user

SETTINGS = Settings(public_url="http://x", lease_s=10, max_attempts=2, max_preemptions=3, retry_delay_s=1)


@dataclass(frozen=True)
class Held:
    """An attempt that some worker believes to own."""

    attempt_id: str
    task_id: int
    number: int


@cache
def migrated_database() -> Database:
    """One for all examples: migrating takes longer than an example."""
    database = Database("sqlite://")
    migrate(database.engine)
    return database


def empty_database() -> Database:
    database = migrated_database()
    with database.write() as session:
        for table in reversed(Base.metadata.sorted_tables):
            session.execute(delete(table))
    return database


class Queue(RuleBasedStateMachine):
    """Workers come, go silent and come back; people cancel and retry; time passes."""

    attempts = Bundle("attempts")

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.database = empty_database()
        self.results: dict[int, str] = {}
        self.finals: dict[int, str] = {}
        """Tasks seen completed: they never change again."""
        self.writes: dict[int, int] = {}
        """Newest attempt of which a write was taken, by task."""
        with self.database.write() as session:
            user_id = ensure_user(session, "local", self.clock.now())
            self._add_run(session, user_id, [1, 2, 3])
            self._add_run(session, user_id, [4, 5], follows=1)
            self._add_run(session, user_id, [6, 7], follows=2)

    @rule(target=attempts)
    def claim(self) -> Any:
        with self.database.write() as session:
            claimed = claim(
                session, worker_id="w", largest_gpu_count=8, lease_s=SETTINGS.lease_s, now=self.clock.now()
            )
        if claimed is None:
            return multiple()
        assert claimed.number > self.writes.get(claimed.task_id, 0)
        with self.database.read() as session:
            assert session.get_one(Task, claimed.task_id).source_id is None, "a follower was claimed"
        return Held(claimed.attempt_id, claimed.task_id, claimed.number)

    @rule(held=attempts)
    def heartbeat(self, held: Held) -> None:
        with self._as_worker(held) as session:
            leases.heartbeat(
                session, held.attempt_id, Heartbeat(phase="training"), lease_s=10, now=self.clock.now()
            )

    @rule(held=attempts, first_seq=st.integers(0, 3), iteration=st.integers(1, 5))
    def report_progress(self, held: Held, first_seq: int, iteration: int) -> None:
        event = {"event": "iteration", "iteration": iteration, "max_iterations": 5, "mean_reward": 1.0}
        with self._as_worker(held) as session:
            batch = EventBatch(first_seq=first_seq, events=[event])
            record_events(session, held.attempt_id, batch, now=self.clock.now())

    @rule(
        held=attempts,
        outcome=st.sampled_from(["completed", "failed", "preempted", "cancelled"]),
        retryable=st.booleans(),
    )
    def commit(self, held: Held, outcome: Any, retryable: bool) -> None:
        summary = {"iteration": 5, "best_checkpoint": "m.pt"} if outcome == "completed" else None
        report = AttemptReport(outcome=outcome, retryable=retryable, error="e", summary=summary)
        with self._as_worker(held) as session:
            if outcome == "completed" and self._is_live(held):
                self._store_checkpoint(session, held)
            reports.commit(session, held.attempt_id, report, settings=SETTINGS, now=self.clock.now())
            if outcome == "completed":
                before = self.results.setdefault(held.task_id, held.attempt_id)
                assert before == held.attempt_id, "a second result was taken"

    @rule(held=attempts)
    def die(self, held: Held) -> None:
        """The executor sees the runner gone."""
        with self._as_worker(held) as session:
            ending = Ending(outcome=Outcome.LOST, error="gone")
            end_attempt(session, held.attempt_id, ending, settings=SETTINGS, now=self.clock.now())

    @rule(seconds=st.sampled_from([0.5, 3, 11]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule()
    def reap(self) -> None:
        with self.database.write() as session:
            reap(session, settings=SETTINGS, now=self.clock.now())
        with self.database.read() as session:
            late = select(func.count()).where(
                Attempt.status == Outcome.RUNNING, Attempt.lease_expires_at < self.clock.now()
            )
            assert session.scalar(late) == 0

    @rule(task=st.integers(1, 7))
    def cancel(self, task: int) -> None:
        self._ask(requests.cancel, task)

    @rule(task=st.integers(1, 7))
    def retry(self, task: int) -> None:
        self._ask(requests.retry, task)

    @invariant()
    def one_result_at_most(self) -> None:
        with self.database.read() as session:
            committed = dict(
                session.execute(
                    select(Attempt.task_id, func.count())
                    .where(Attempt.status == Outcome.COMPLETED)
                    .group_by(Attempt.task_id)
                ).all()
            )
            assert all(count == 1 for count in committed.values())
            completed = set(
                session.scalars(
                    select(Task.id).where(Task.status == State.COMPLETED, Task.source_id.is_(None))
                )
            )
            assert completed == set(committed) == set(self.results)

    @invariant()
    def followers_have_the_result_of_their_source_or_wait_for_one_that_goes_on(self) -> None:
        with self.database.read() as session:
            tasks = {task.id: task for task in session.scalars(select(Task))}
        for task in tasks.values():
            if task.source_id is None:
                continue
            source = tasks[task.source_id]
            assert source.source_id is None, "a chain"
            if task.status == State.QUEUED:
                assert source.status in {State.QUEUED, State.RUNNING}
            else:
                assert (task.status, source.status) == (State.COMPLETED, State.COMPLETED)
                assert task.s3_key == source.s3_key
                assert task.attempt == 0

    @invariant()
    def running_tasks_have_one_live_attempt(self) -> None:
        with self.database.read() as session:
            running = session.execute(select(Task.id, Task.attempt).where(Task.status == State.RUNNING)).all()
            live = session.execute(
                select(Attempt.task_id, Attempt.number).where(Attempt.status == Outcome.RUNNING)
            ).all()
            assert sorted(map(tuple, running)) == sorted(map(tuple, live))

    @invariant()
    def completed_is_for_ever(self) -> None:
        with self.database.read() as session:
            tasks = session.execute(select(Task.id, Task.status, Task.s3_key, Task.attempt)).all()
        for task_id, status, key, attempt in tasks:
            if task_id in self.finals:
                assert (status, key, attempt) == self.finals[task_id]
            elif status == State.COMPLETED:
                self.finals[task_id] = (status, key, attempt)

    @invariant()
    def budgets_hold_and_the_run_follows(self) -> None:
        with self.database.read() as session:
            tasks = session.scalars(select(Task)).all()
            runs = session.scalars(select(Run)).all()
        for task in tasks:
            assert task.errors <= SETTINGS.max_attempts
            assert task.preemptions <= SETTINGS.max_preemptions + 1
            assert (task.completed_at is not None) == (task.status in {"completed", "failed", "cancelled"})
        for run in runs:
            states = {task.status for task in tasks if task.run_id == run.id}
            if states <= {"completed", "failed", "cancelled"}:
                assert run.status in states
            else:
                assert run.status in {"queued", "running"}

    @invariant()
    def points_come_from_attempts_that_owned_the_task(self) -> None:
        with self.database.read() as session:
            points = session.execute(select(Point.task_id, Point.attempt)).all()
        for task_id, attempt in points:
            assert attempt <= self.writes.get(task_id, 0)

    def _add_run(
        self, session: Any, user_id: int, task_ids: Sequence[int], *, follows: int | None = None
    ) -> None:
        now = self.clock.now()
        run = Run(
            slug=f"run_{task_ids[0]:08}", user_id=user_id, name="x", mode="training", config={},
            explicit_tasks=False, num_tasks=len(task_ids), status="queued", created_at=now, updated_at=now,
        )  # fmt: skip
        session.add(run)
        session.flush()
        rows = [
            {
                "id": task_id, "run_id": run.id, "index": index, "params": {}, "config": {}, "gpu_count": 1,
                "status": "queued", "available_at": now, "created_at": now, "source_id": follows,
            }
            for index, task_id in enumerate(task_ids)
        ]  # fmt: skip
        session.execute(insert(Task), rows)

    def _as_worker(self, held: Held) -> Any:
        """A write as that worker: taken exactly when it owns the task, refused with LeaseLostError if not."""
        return _Write(self, held)

    def _is_live(self, held: Held) -> bool:
        with self.database.read() as session:
            attempt = session.get_one(Attempt, held.attempt_id)
            task = session.get_one(Task, held.task_id)
            return (attempt.status, task.status, task.attempt) == ("running", "running", held.number)

    def _store_checkpoint(self, session: Any, held: Held) -> None:
        key = f"runs/run_x/tasks/{held.task_id}/attempt-{held.number}/m.pt"
        attempt, task = fenced(session, held.attempt_id)
        session.add(
            Artifact(
                run_id=task.run_id, task_id=task.id, attempt=attempt.number, key=key, path="m.pt",
                artifact_type="checkpoint", size_bytes=0, sha256=hashlib.sha256(b"").hexdigest(),
                created_at=self.clock.now(),
            )
        )  # fmt: skip
        session.flush()

    def _ask(self, what: Any, task: int) -> None:
        with self.database.write() as session:
            try:
                run_id = session.scalars(select(Task.run_id).where(Task.id == task)).one()
                what(session, run_id=run_id, task_id=task, now=self.clock.now())
            except ConflictError:
                status = session.scalar(select(Task.status).where(Task.id == task))
                allowed = RULES[Move.CANCEL if what is requests.cancel else Move.RETRY].sources
                assert status not in allowed


class _Write:
    def __init__(self, queue: Queue, held: Held) -> None:
        self._queue = queue
        self._held = held
        self._owns = queue._is_live(held)
        self._context = queue.database.write()

    def __enter__(self) -> Any:
        return self._context.__enter__()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        self._context.__exit__(kind, error, trace)
        if isinstance(error, LeaseLostError):
            assert not self._owns, "the owner was refused"
            return True
        if error is not None:
            return False
        if self._owns:
            self._queue.writes[self._held.task_id] = self._held.number
        else:
            self._assert_a_repeated_report()
        return False

    def _assert_a_repeated_report(self) -> None:
        with self._queue.database.read() as session:
            taken = session.scalar(select(Attempt.report_hash).where(Attempt.id == self._held.attempt_id))
        assert taken is not None, "a stale attempt wrote"


TestQueue = Queue.TestCase
TestQueue.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
