"""Delivers files, the most valuable first, without anything else having to wait."""

import itertools
import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_fixed

from canard.errors import APIError, CanardError, LeaseLostError
from canard.wire import ArtifactType, UploadRequest
from canard_platform.attempt.api import AttemptApi, patiently
from canard_platform.attempt.contents import Content
from canard_platform.attempt.stop import StopOrder, StopReason

log = logging.getLogger(__name__)

TRIES_OF_A_REFUSED = 3
IDLE_S = 0.2

RANKS: dict[ArtifactType, int] = {
    "checkpoint": 0,
    "summary": 1,
    "policy": 1,
    "config": 1,
    "video": 2,
    "tensorboard": 3,
    "log": 3,
}
"""What goes first when several wait: a machine may be taken away in seconds."""


@dataclass(frozen=True, kw_only=True)
class Upload:
    """A file of the attempt; `content` is asked when its turn comes, since the file may have grown."""

    path: str
    artifact_type: ArtifactType
    content: Callable[[], Content]
    iteration: int | None = None
    mean_reward: float | None = None
    before_recorded: Callable[[], None] = lambda: None
    """What has to be true before the platform may count on the file."""


@dataclass(order=True)
class _Waiting:
    rank: tuple[int, int, int]
    upload: Upload = field(compare=False)


class Uploader:
    """A thread and its queue. `failures` says why a path could not be delivered."""

    def __init__(self, api: AttemptApi, stop: StopOrder) -> None:
        self._api = api
        self._stop = stop
        self._queue: queue.PriorityQueue[_Waiting] = queue.PriorityQueue()
        self._counter = itertools.count()
        self._waiting: set[str] = set()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="uploads", daemon=True)
        self.failures: dict[str, str] = {}

    def start(self) -> None:
        self._thread.start()

    def add(self, upload: Upload) -> None:
        """Deliver it in its turn; one path waits once, and is read when its turn comes."""
        if upload.path in self._waiting:
            return
        self._waiting.add(upload.path)
        newest_first = -(upload.iteration or 0)
        rank = (RANKS[upload.artifact_type], newest_first, next(self._counter))
        self._queue.put(_Waiting(rank, upload))

    def finish(self, *, within_s: float | None = None) -> bool:
        """Wait until all is delivered or refused, or the time is over; whether all is done."""
        self._closing.set()
        self._thread.join(within_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stop.lost.is_set():
            closing = self._closing.is_set()
            try:
                upload = self._queue.get(timeout=0 if closing else IDLE_S).upload
            except queue.Empty:
                if closing:
                    return
                continue
            self._waiting.discard(upload.path)
            self._deliver(upload)

    def _deliver(self, upload: Upload) -> None:
        try:
            again_if_refused = Retrying(
                retry=retry_if_exception(_refused),
                stop=stop_after_attempt(TRIES_OF_A_REFUSED),
                wait=wait_fixed(IDLE_S),
                reraise=True,
            )
            again_if_refused(patiently(self._stop.lost), self._try, upload)
            self.failures.pop(upload.path, None)
        except LeaseLostError:
            self._stop.give(StopReason.LEASE_LOST)
        except (CanardError, OSError) as error:
            self.failures[upload.path] = str(error)
            log.error("%s was not uploaded: %s", upload.path, error)

    def _try(self, upload: Upload) -> None:
        """Announce, send, record. Each try starts from the front: the URL may have expired meanwhile."""
        content = upload.content()
        said = UploadRequest(
            path=upload.path,
            artifact_type=upload.artifact_type,
            size_bytes=content.size_bytes,
            sha256=content.sha256,
            iteration=upload.iteration,
            mean_reward=upload.mean_reward,
        )
        ticket = self._api.announce(said)
        self._api.put(ticket, content.chunks(), size_bytes=content.size_bytes)
        upload.before_recorded()
        self._api.record(said)


def _refused(error: BaseException) -> bool:
    """The file may have changed between two looks at it, or its URL expired."""
    return isinstance(error, APIError) and not isinstance(error, LeaseLostError)
