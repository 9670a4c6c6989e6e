"""A run that was submitted: wait for it, look at it, fetch its results, stop it."""

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from canard.errors import (
    ArtifactNotFoundError,
    ConnectionFailedError,
    RateLimitedError,
    RunFailedError,
    ServerError,
    WaitTimeoutError,
)
from canard.models import Run, RunMetrics, Task
from canard.progress import Clock, View, no_view, standing, view_of

if TYPE_CHECKING:
    from canard.client import Client

PASSING = (ConnectionFailedError, ServerError, RateLimitedError)
"""Errors that a wait outlives, for a while."""

SHOWN_FAILURES = 3


class RunHandle:
    """What the submit methods return. `run` is the run as it was last seen; `refresh()` looks again."""

    def __init__(self, client: "Client", run: Run) -> None:
        self._client = client
        self.run = run

    def __repr__(self) -> str:
        return f"RunHandle({self.run.slug!r}, status={self.run.status!r})"

    @property
    def slug(self) -> str:
        return self.run.slug

    @property
    def status(self) -> str:
        """As it was last seen."""
        return self.run.status

    @property
    def url(self) -> str:
        """The run's page on the dashboard."""
        return self.run.dashboard_url

    @property
    def dashboard_url(self) -> str:
        """The run's page on the dashboard."""
        return self.run.dashboard_url

    @property
    def goes_on(self) -> str:
        """One line for somebody who stops waiting: how to come back, and how to stop the run."""
        return f"{self.slug} goes on. Come back: canard watch {self.slug}. Stop it: canard cancel {self.slug}"

    def refresh(self) -> Run:
        """The run as it is now."""
        self.run = self._client.get_run(self.slug)
        return self.run

    def cancel(self) -> Run:
        """Cancel what has not ended."""
        self.run = self._client.cancel_run(self.slug)
        return self.run

    def get_metrics(self) -> RunMetrics:
        """Aggregated over the tasks."""
        return self._client.get_run_metrics(self.slug)

    def get_tasks(self) -> list[Task]:
        """All tasks, in order."""
        return self._client.get_run_tasks(self.slug)

    def list_artifacts(self, artifact_type: str | None = None) -> list[dict[str, Any]]:
        """The files of the run, optionally of one type."""
        return self._client.list_artifacts(self.slug, artifact_type)

    def download_best_checkpoint(self, output_dir: Path | str) -> Path:
        """Put the checkpoint with the highest mean reward, over all tasks, into `output_dir`.

        Of equal ones the later counts. One without a known reward is taken only if none has one.

        Raises:
            ArtifactNotFoundError: the run has no checkpoint (yet).
        """
        checkpoints = self.list_artifacts("checkpoint")
        if not checkpoints:
            self.refresh()
            raise ArtifactNotFoundError(
                f"{self.slug} has no checkpoint"
                + (f" (it is {self.status})" if self.run.is_terminal else f" yet (it is {self.status})")
            )
        best = max(checkpoints, key=_merit)
        return self._client.download_artifact(self.slug, best["s3_key"], output_dir)

    def wait_for_completion(
        self,
        show_progress: bool = True,
        timeout_s: float | None = None,
        *,
        poll_s: float = 1.0,
        outage_s: float = 600.0,
        clock: Clock = time,
    ) -> Run:
        """Return when the run has completed. Ctrl-C ends the wait, not the run.

        Args:
            show_progress: a live bar on a terminal, now and then a line elsewhere.
            timeout_s: how long to wait; None for as long as it takes.
            poll_s: time between two looks.
            outage_s: how long the platform may be out of reach.

        Raises:
            RunFailedError: it failed or was cancelled; says what the tasks died of.
            WaitTimeoutError: it was still going after `timeout_s`.
            ConnectionFailedError: the platform was out of reach for `outage_s`.
        """
        wait = _Wait(self, timeout_s=timeout_s, poll_s=poll_s, outage_s=outage_s, clock=clock)
        with view_of(self.run, clock=clock) if show_progress else no_view() as view:
            wait.until_the_end(view)
        if not self.run.is_complete:
            raise self._failure()
        return self.run

    def _failure(self) -> RunFailedError:
        failed = [task for task in self.get_tasks() if task.status != "completed"]
        told = [_told(task) for task in failed if task.error_message][:SHOWN_FAILURES]
        more = len(failed) - len(told)
        text = (
            f"{self.slug} {self.status}: {self.run.completed_tasks} of {self.run.num_tasks} tasks completed"
        )
        text += "".join(f"; {line}" for line in told) + (f"; and {more} more" if told and more else "")
        return RunFailedError(f"{text}; see: canard logs {self.slug}", run=self.run, tasks=failed)


class _Wait:
    """Looks at a run until it has ended, through outages, within the time."""

    def __init__(
        self, handle: RunHandle, *, timeout_s: float | None, poll_s: float, outage_s: float, clock: Clock
    ) -> None:
        self._handle = handle
        self._client = handle._client
        self._poll_s = poll_s
        self._outage_s = outage_s
        self._clock = clock
        self._timeout_s = timeout_s
        self._started_at = clock.monotonic()
        self._reached_at = self._started_at

    def until_the_end(self, view: View) -> None:
        while True:
            pause_s = self._look(view)
            if self._handle.run.is_terminal:
                return
            left_s = self._left_s()
            if left_s <= 0:
                raise WaitTimeoutError(
                    f"{self._handle.slug} is still {self._handle.status} after {self._timeout_s:g} s."
                    f" {self._handle.goes_on}"
                )
            self._clock.sleep(min(pause_s, left_s))

    def _look(self, view: View) -> float:
        """Look once; returns how long to wait before the next look (s)."""
        # The first look is always made, however short the time.
        within_s = max(min(self._client.patience.total_s, self._left_s()), 1.0)
        try:
            run, tasks = self._client.peek(self._handle.slug, within_s=within_s)
        except PASSING as error:
            out_s = self._clock.monotonic() - self._reached_at
            if out_s >= self._outage_s:
                raise
            view.note(f"no word from the platform, trying on ({error})")
            return max(
                self._poll_s, min(getattr(error, "retry_after_s", None) or 0.0, self._outage_s - out_s)
            )
        self._reached_at = self._clock.monotonic()
        self._handle.run = run
        view.show(standing(run, tasks))
        return self._poll_s

    def _left_s(self) -> float:
        if self._timeout_s is None:
            return math.inf
        return self._started_at + self._timeout_s - self._clock.monotonic()


def _merit(checkpoint: dict[str, Any]) -> tuple[bool, float, int, str]:
    """Orders checkpoints: a known reward, then the higher, then the later."""
    reward = checkpoint.get("mean_reward")
    known = isinstance(reward, int | float) and math.isfinite(reward)
    return (
        known,
        float(reward) if known and reward is not None else 0.0,
        checkpoint.get("iteration") or 0,
        str(checkpoint.get("created_at")),
    )


def _told(task: Task) -> str:
    first_line = (task.error_message or task.status).strip().splitlines()[0]
    values = ", ".join(f"{name}={value}" for name, value in task.params.items())
    return f"task {task.index}{f' ({values})' if values else ''}: {first_line}"
