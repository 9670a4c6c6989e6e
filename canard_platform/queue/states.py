"""The life of a task as a table. Everything that changes a task's status asks it.

    queued --claim--> running --complete--> completed
      ^ |                |-----fail-------> failed
      | `---cancel---.   |-----cancel-----> cancelled
      |              `-> cancelled
      `----requeue-------'

A queued task that follows another (see `canard_platform.queue.followers`) is not claimed; `take over` leads
it from queued to completed when the other has completed.

Completed, failed and cancelled are final for everything but a person's `retry` of what failed or was
cancelled; a completed task is final for ever.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Move(StrEnum):
    CLAIM = "claim"
    COMPLETE = "complete"
    FAIL = "fail"
    REQUEUE = "requeue"
    CANCEL = "cancel"
    RETRY = "retry"
    TAKE_OVER = "take over"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A move leads from any of its sources to one target."""

    sources: frozenset[State]
    target: State


RULES: Mapping[Move, Rule] = {
    Move.CLAIM: Rule(sources=frozenset({State.QUEUED}), target=State.RUNNING),
    Move.COMPLETE: Rule(sources=frozenset({State.RUNNING}), target=State.COMPLETED),
    Move.FAIL: Rule(sources=frozenset({State.RUNNING}), target=State.FAILED),
    Move.REQUEUE: Rule(sources=frozenset({State.RUNNING}), target=State.QUEUED),
    Move.CANCEL: Rule(sources=frozenset({State.QUEUED, State.RUNNING}), target=State.CANCELLED),
    Move.TAKE_OVER: Rule(sources=frozenset({State.QUEUED}), target=State.COMPLETED),
    Move.RETRY: Rule(sources=frozenset({State.FAILED, State.CANCELLED}), target=State.QUEUED),
}

TERMINAL = frozenset({State.COMPLETED, State.FAILED, State.CANCELLED})


class Outcome(StrEnum):
    """How an attempt stands or ended; `lost` is one that stopped without a word."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    PREEMPTED = "preempted"
    CANCELLED = "cancelled"
    LOST = "lost"


def run_state(counts: Mapping[State, int]) -> State:
    """What a run is, from how many of its tasks are in each state."""

    def has(state: State) -> bool:
        return counts.get(state, 0) > 0

    if has(State.RUNNING):
        return State.RUNNING
    if has(State.QUEUED):
        return State.RUNNING if any(has(state) for state in TERMINAL) else State.QUEUED
    if has(State.FAILED):
        return State.FAILED
    return State.CANCELLED if has(State.CANCELLED) else State.COMPLETED
