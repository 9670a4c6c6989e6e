"""Between the queue and the executor: launches what was claimed, notices what died, kills what must go.

`tick` does each duty once; `run` repeats it. All state that matters is in the database and the executor, so a
dispatcher that is started anew goes on where the last one stopped.
"""

import logging
import threading
import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from canard.errors import LeaseLostError
from canard_platform.executors.executor import GONE, Job, Node, Observation, ProcessState
from canard_platform.queue.claims import Claim, claim, launched
from canard_platform.queue.endings import Ending, end_attempt, expired_handles, reap
from canard_platform.queue.states import Outcome, State
from canard_platform.services import Services
from canard_platform.store.tables import Attempt, Task

log = logging.getLogger(__name__)

TICK_S = 0.25
STALL_S = 5.0
"""A tick that comes this late means that the machine slept: leases get time to be renewed first."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What every attempt of this platform is launched with."""

    trainer_python: str
    git_cache: str


@dataclass(frozen=True, kw_only=True)
class _Live:
    """A running attempt, as the database has it."""

    attempt_id: str
    handle: str | None
    cancel_requested_at: datetime | None


class Dispatcher:
    """One a platform; every write it makes is fenced all the same."""

    def __init__(self, services: Services, launch: Launch) -> None:
        self._services = services
        self._launch = launch
        self._lingering: dict[str, datetime] = {}
        """Handles whose attempt has ended, and since when."""
        self._ticked_at: datetime | None = None
        self._reap_from: datetime = services.clock.now()

    def run(self, stop: threading.Event) -> None:
        """Tick until told to stop; an error is logged and the next tick tries again."""
        work = self._services.work
        while not stop.is_set():
            work.clear()
            try:
                self.tick()
            except Exception:
                log.exception("the dispatcher failed; it goes on")
            work.wait(TICK_S)

    def tick(self) -> None:
        now = self._services.clock.now()
        self._notice_a_stall(now)
        self._bury_the_dead(now)
        if now >= self._reap_from:
            self._reap(now)
        if not self._services.stopping.is_set():
            self._fill(now)

    def recover(self) -> None:
        """After a start: attempts that were claimed and never launched go back to the queue."""
        now = self._services.clock.now()
        for live in self._live():
            if live.handle is None:
                self._end(live.attempt_id, Outcome.PREEMPTED, "the platform stopped before it was launched")
        # A runner that outlived the service has a report to deliver: it gets the time for it.
        self._reap_from = now + self._patience()

    def drain(self) -> None:
        """Hand every running attempt its notice, wait for them within the grace, kill the rest."""
        services = self._services
        executor = services.executor
        grace_s = services.settings.stop_grace_s
        for handle in executor.list():
            executor.cancel(handle, grace_s=grace_s)
        deadline = time.monotonic() + grace_s
        while executor.list() and time.monotonic() < deadline:
            executor.poll(executor.list())
            time.sleep(0.05)
        for handle in executor.list():
            executor.cancel(handle, grace_s=0)
        for live in self._live():
            self._end(live.attempt_id, Outcome.PREEMPTED, "the platform was stopped")

    def _notice_a_stall(self, now: datetime) -> None:
        if self._ticked_at is not None and (now - self._ticked_at).total_seconds() > STALL_S:
            self._reap_from = now + self._patience()
        self._ticked_at = now

    def _patience(self) -> timedelta:
        settings = self._services.settings
        return timedelta(seconds=min(settings.lease_s, 3 * settings.heartbeat_s))

    def _bury_the_dead(self, now: datetime) -> None:
        """Whatever the executor saw end: end its attempt, without waiting for the lease."""
        executor = self._services.executor
        handles = executor.list()
        live = {attempt.handle: attempt for attempt in self._live() if attempt.handle is not None}
        seen = executor.poll(sorted({*handles, *live}))
        for handle, attempt in live.items():
            observation = seen.get(handle)
            if observation is not None and observation.state in GONE:
                outcome = _outcome(observation)
                self._end(attempt.attempt_id, outcome, _last_words(observation), observation.exit_code)
            elif attempt.cancel_requested_at is not None:
                grace = timedelta(seconds=self._services.settings.cancel_grace_s)
                if now - attempt.cancel_requested_at > grace:
                    executor.cancel(handle, grace_s=0)
        self._stop_lingering(set(handles) - set(live), now)

    def _stop_lingering(self, ended: set[str], now: datetime) -> None:
        """A runner whose attempt has ended has a little time to leave by itself."""
        self._lingering = {handle: self._lingering.get(handle, now) for handle in ended}
        for handle, since in self._lingering.items():
            if (now - since).total_seconds() > self._services.settings.linger_s:
                self._services.executor.cancel(handle, grace_s=0)

    def _reap(self, now: datetime) -> None:
        """The process goes first where we can reach it: a requeued task never runs twice on one machine."""
        services = self._services
        with services.database.read() as session:
            expired = expired_handles(session, now=now)
        for handle in expired:
            if handle is not None:
                log.warning("a lease ran out; %s is killed", handle)
                services.executor.cancel(handle, grace_s=0)
        if expired:
            with services.database.write() as session:
                reap(session, settings=services.settings, now=now)

    def _fill(self, now: datetime) -> None:
        """Launch until nothing fits; what is free is asked again after each launch."""
        while any(self._place_one(node, now) for node in self._services.executor.capacity()):
            pass

    def _place_one(self, node: Node, now: datetime) -> bool:
        services = self._services
        if not node.largest_gpu_count or not self._is_anything_queued(now):
            return False
        with services.database.write() as session:
            claimed = claim(
                session,
                worker_id=node.name,
                largest_gpu_count=node.largest_gpu_count,
                lease_s=services.settings.lease_s,
                now=now,
            )
        if claimed is None:
            return False
        self._launch_one(claimed, node)
        return True

    def _is_anything_queued(self, now: datetime) -> bool:
        """A look that takes no lock: most ticks find nothing."""
        query = select(Task.id).where(
            Task.status == State.QUEUED, Task.source_id.is_(None), Task.available_at <= now
        )
        with self._services.database.read() as session:
            return session.scalar(query.limit(1)) is not None

    def _launch_one(self, claimed: Claim, node: Node) -> None:
        services = self._services
        job = Job(
            attempt_id=claimed.attempt_id,
            gpu_count=claimed.gpu_count,
            node=node.name,
            launch={
                "api_url": services.settings.public_url,
                "attempt_id": claimed.attempt_id,
                "token": claimed.token,
                "trainer_python": self._launch.trainer_python,
                "git_cache": self._launch.git_cache,
                "allow_local_paths": services.executor.allows_local_paths,
            },
        )
        try:
            handle = services.executor.submit(job)
        except Exception as error:
            log.exception("attempt %s was not launched", claimed.attempt_id)
            self._end(claimed.attempt_id, Outcome.LOST, f"the attempt could not be launched: {error}")
            return
        with services.database.write() as session:
            launched(session, claimed.attempt_id, handle)
        log.info("task %s, attempt %s: launched as %s", claimed.task_id, claimed.number, handle)

    def _live(self) -> list[_Live]:
        with self._services.database.read() as session:
            return _live(session)

    def _end(self, attempt_id: str, outcome: Outcome, error: str, exit_code: int | None = None) -> None:
        services = self._services
        ending = Ending(outcome=outcome, error=error, exit_code=exit_code)
        try:
            with services.database.write() as session:
                state = end_attempt(
                    session, attempt_id, ending, settings=services.settings, now=services.clock.now()
                )
            log.warning("attempt %s %s (%s); its task is %s", attempt_id, outcome, error[:200], state)
        except LeaseLostError:
            pass  # it reported by itself in the meantime


def _live(session: Session) -> list[_Live]:
    query = (
        select(Attempt.id, Attempt.handle, Task.cancel_requested_at)
        .join(Task, Task.id == Attempt.task_id)
        .where(Attempt.status == Outcome.RUNNING)
    )
    return [
        _Live(
            attempt_id=row.id,
            handle=row.handle,
            cancel_requested_at=row.cancel_requested_at,
        )
        for row in session.execute(query)
    ]


def _outcome(observation: Observation) -> Outcome:
    return Outcome.PREEMPTED if observation.state is ProcessState.PREEMPTED else Outcome.LOST


def _last_words(observation: Observation) -> str:
    ended = "was lost" if observation.exit_code is None else f"ended with code {observation.exit_code}"
    detail = f"\n{observation.detail}" if observation.detail else ""
    return f"the attempt's runner {ended} without a report{detail}"
