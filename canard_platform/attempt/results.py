"""Which files of an attempt are delivered, and when."""

import logging
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from canard.wire import ArtifactType
from canard_platform.attempt.contents import content_of, end_of
from canard_platform.attempt.folders import Folders
from canard_platform.attempt.tail import EventTail
from canard_platform.attempt.uploads import Upload, Uploader

log = logging.getLogger(__name__)

LOG_INTERVAL_S = 30.0
MOST_LOG_BYTES = 8 * 2**20

ANNOUNCED: dict[str, ArtifactType] = {"checkpoint": "checkpoint", "video": "video", "policy": "policy"}
"""Events that say that a file is whole, and what it is."""


class Results:
    """Follows the trainer's events for files to deliver, and remembers what else they say."""

    def __init__(
        self,
        folders: Folders,
        uploader: Uploader,
        *,
        wait_until_told: Callable[[int], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            wait_until_told: returns when the platform has the events before this position of their file.
        """
        self._folders = folders
        self._uploader = uploader
        self._wait_until_told = wait_until_told
        self._tail = EventTail(folders.events)
        self._clock = clock
        self._logs_at = clock()
        self._sizes: dict[Path, int] = {}
        """Of files that grow, as they were when they were last queued."""
        self.has_started = False
        self.failure: str | None = None
        """What the trainer's last `failed` event says."""

    def follow(self) -> None:
        """Take what the trainer wrote since the last time."""
        while True:
            for event in self._tail.read():
                self._take(event)
            if self._tail.at_end():
                break
        if self._clock() - self._logs_at >= LOG_INTERVAL_S:
            self.deliver_logs()

    def deliver_config(self, path: Path) -> None:
        self._add(path, path.name, "config")

    def deliver_rest(self) -> None:
        """What is there when the trainer has ended."""
        if self._folders.summary.is_file():
            self._add(self._folders.summary, self._folders.summary.name, "summary")
        self._deliver_tensorboard()
        self.deliver_logs()

    def deliver_logs(self) -> None:
        self._logs_at = self._clock()
        for path in (self._folders.trainer_log, self._folders.runner_log):
            if self._has_grown(path):
                content = partial(end_of, path, most_bytes=MOST_LOG_BYTES)
                self._uploader.add(Upload(path=f"logs/{path.name}", artifact_type="log", content=content))

    def _take(self, event: dict[str, Any]) -> None:
        kind = event.get("event")
        if kind == "started":
            self.has_started = True
        elif kind == "failed":
            message = event.get("message")
            self.failure = message if isinstance(message, str) and message else None
        elif isinstance(kind, str) and kind in ANNOUNCED:
            self._deliver_announced(event, ANNOUNCED[kind])

    def _deliver_announced(self, event: dict[str, Any], artifact_type: ArtifactType) -> None:
        said = event.get("path")
        path = self._folders.output / said if isinstance(said, str) else None
        if path is None or not path.resolve().is_relative_to(self._folders.output.resolve()):
            log.warning("a %s event names no file of the output: %.200r", artifact_type, said)
            return
        iteration, reward = event.get("iteration"), event.get("mean_reward")
        # An attempt that goes on from a checkpoint does not tell what led to it again.
        told = partial(self._wait_until_told, self._tail.position) if artifact_type == "checkpoint" else None
        self._add(
            path,
            str(said),
            artifact_type,
            iteration=iteration if isinstance(iteration, int) else None,
            mean_reward=reward if isinstance(reward, int | float) else None,
            **({"before_recorded": told} if told is not None else {}),
        )
        if artifact_type == "checkpoint":
            self._deliver_tensorboard()

    def _deliver_tensorboard(self) -> None:
        root = self._folders.output / "tensorboard"
        for path in sorted(root.rglob("*tfevents*")):
            if self._has_grown(path):
                self._add(path, path.relative_to(self._folders.output).as_posix(), "tensorboard")

    def _has_grown(self, path: Path) -> bool:
        size = path.stat().st_size if path.exists() else 0
        grown = size != self._sizes.get(path, 0)
        self._sizes[path] = size
        return grown

    def _add(self, path: Path, name: str, artifact_type: ArtifactType, **said: Any) -> None:
        upload = Upload(path=name, artifact_type=artifact_type, content=partial(content_of, path), **said)
        self._uploader.add(upload)
