"""The port of executors: they place, launch, watch and stop attempts, and decide nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol


class ProcessState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    EXITED = "exited"
    LOST = "lost"
    PREEMPTED = "preempted"
    UNKNOWN = "unknown"


GONE = frozenset({ProcessState.EXITED, ProcessState.LOST, ProcessState.PREEMPTED})
"""States in which nothing of the attempt runs any more."""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What an executor sees of one attempt."""

    state: ProcessState
    exit_code: int | None = None
    detail: str | None = None
    """Last words of the process, for the error that people read."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """A place for attempts."""

    name: str
    slots: int
    free: int
    gpus: int
    """0: a slot is a share of the CPUs, and a task takes one whatever its gpu_count."""

    @property
    def largest_gpu_count(self) -> int:
        """The largest gpu_count that fits now; 0 for none."""
        if self.gpus:
            return self.free
        return MOST_GPUS if self.free else 0


MOST_GPUS = 8


@dataclass(frozen=True, kw_only=True)
class Job:
    """One attempt to launch; `attempt_id` is the key by which submitting twice is submitting once."""

    attempt_id: str
    gpu_count: int
    node: str
    launch: Mapping[str, Any] = field(repr=False)
    """What the attempt runner reads; it has the attempt's token."""


class Executor(Protocol):
    """Handles are strings that live in the database and outlive the service."""

    allows_local_paths: bool
    """Whether code and checkpoints may be paths of the machine that asks."""

    def capacity(self) -> Sequence[Node]:
        """The nodes that are alive, with what is free on each."""
        ...

    def submit(self, job: Job) -> str:
        """Launch; returns the handle."""
        ...

    def poll(self, handles: Sequence[str]) -> Mapping[str, Observation]:
        """One observation for each handle; UNKNOWN when it cannot be told now."""
        ...

    def cancel(self, handle: str, *, grace_s: float) -> None:
        """Ask it to stop (a preemption notice), kill what is left after the grace; returns at once."""
        ...

    def list(self) -> Sequence[str]:
        """Handles of all attempts of which something may still run."""
        ...
