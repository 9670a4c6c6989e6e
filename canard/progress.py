"""A live view of a run while somebody waits for it."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from canard.models import Run, Task

PLAIN_EVERY_S = 15.0


class Clock(Protocol):
    """The part of the `time` module that waiting needs."""

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float, /) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where a run is; what is not known yet is None."""

    status: str
    fraction: float
    tasks: str
    iterations: str | None
    mean_reward: float | None

    def __str__(self) -> str:
        parts = [self.status, f"{self.fraction:.0%}", f"tasks {self.tasks}"]
        if self.iterations is not None:
            parts.append(f"iterations {self.iterations}")
        if self.mean_reward is not None:
            parts.append(f"mean reward {self.mean_reward:.2f}")
        return ", ".join(parts)


def standing(run: Run, tasks: Sequence[Task] | None) -> Standing:
    """Sums over the tasks; iterations and reward need the tasks."""
    trainings = [task.training for task in tasks or () if task.training is not None]
    rewards = [training.mean_reward for training in trainings if training.mean_reward is not None]
    to_do = sum(training.max_iterations for training in trainings)
    done = sum(training.current_iteration for training in trainings)
    return Standing(
        status=run.status,
        fraction=1.0 if run.is_complete else min(max(run.progress, 0.0), 1.0),
        tasks=f"{run.completed_tasks}/{run.num_tasks}",
        iterations=f"{done:,}/{to_do:,}" if to_do else None,
        mean_reward=sum(rewards) / len(rewards) if rewards else None,
    )


class View(Protocol):
    """Something that shows where a run is."""

    def show(self, now: Standing) -> None: ...

    def note(self, message: str) -> None:
        """Something out of the ordinary, such as a platform that does not answer."""


def view_of(run: Run, *, clock: Clock, console: Console | None = None) -> AbstractContextManager[View]:
    """A bar on a terminal, now and then a line elsewhere."""
    console = console or Console()
    return _bar(run, clock, console) if console.is_terminal else _lines(run, clock, console)


@contextmanager
def no_view() -> Iterator[View]:
    """Shows nothing."""
    yield _Nothing()


class _Nothing:
    def show(self, now: Standing) -> None:
        pass

    def note(self, message: str) -> None:
        pass


@contextmanager
def _bar(run: Run, clock: Clock, console: Console) -> Iterator[View]:
    bar = _Bar(run, clock, console)
    with Live(bar, console=console, refresh_per_second=4):
        yield bar


class _Bar:
    """The run with its bar and time left, and below it what else is known, cropped to the terminal."""

    def __init__(self, run: Run, clock: Clock, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            console=console,
            get_time=clock.monotonic,
        )
        self._row = self._progress.add_task(run.slug, total=1.0)
        self._told = run.status

    def __rich__(self) -> RenderableType:
        return Group(self._progress, Text(self._told, no_wrap=True, overflow="ellipsis"))

    def show(self, now: Standing) -> None:
        self._progress.update(self._row, completed=now.fraction)
        self._told = str(now)

    def note(self, message: str) -> None:
        self._told = message


@contextmanager
def _lines(run: Run, clock: Clock, console: Console) -> Iterator[View]:
    yield _Lines(run, clock, console)


class _Lines:
    """A line when the status or the count of finished tasks changes, and every `PLAIN_EVERY_S` otherwise."""

    def __init__(self, run: Run, clock: Clock, console: Console) -> None:
        self._slug = run.slug
        self._clock = clock
        self._console = console
        self._shown: tuple[str, str] | None = None
        self._shown_at = 0.0
        self._noted: str | None = None

    def show(self, now: Standing) -> None:
        self._noted = None
        state = (now.status, now.tasks)
        if state != self._shown or self._clock.monotonic() - self._shown_at >= PLAIN_EVERY_S:
            self._shown, self._shown_at = state, self._clock.monotonic()
            self._print(str(now))

    def note(self, message: str) -> None:
        if message != self._noted:
            self._noted = message
            self._print(message)

    def _print(self, text: str) -> None:
        self._console.print(f"{self._slug}: {text}", markup=False, highlight=False, soft_wrap=True)
