"""What a running platform is made of, put together once and handed to routes, dispatcher and pages."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from canard_platform.artifacts.store import ArtifactStore
from canard_platform.clock import Clock, SystemClock
from canard_platform.executors.executor import Executor
from canard_platform.settings import Settings
from canard_platform.store.database import Database


class Activity:
    """When the last request came, for the service that stops when nobody needs it."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def seen(self) -> None:
        self._last = time.monotonic()

    def idle_s(self) -> float:
        return time.monotonic() - self._last


@dataclass(frozen=True, kw_only=True)
class Services:
    """The injected parts; tests replace any of them."""

    settings: Settings
    database: Database
    artifacts: ArtifactStore
    executor: Executor
    secret: bytes = field(repr=False)
    """Signs URLs and browser sessions."""
    clock: Clock = field(default_factory=SystemClock)
    live_logs: Callable[[str], Sequence[Path]] = field(default=lambda _attempt_id: ())
    """Where the output of a running attempt lies, when it is on this machine."""
    work: threading.Event = field(default_factory=threading.Event)
    """Set when there may be something to dispatch."""
    stopping: threading.Event = field(default_factory=threading.Event)
    """Set when the service goes: no new work, live views end."""
    activity: Activity = field(default_factory=Activity)
