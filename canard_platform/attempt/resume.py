"""The checkpoint to go on from, fetched and found sound before the trainer sees it."""

import hashlib
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from canard.errors import APIError, DownloadError
from canard.wire import AttemptSpec, Checkpoint
from canard_platform.attempt.api import AttemptApi, may_pass, patiently
from canard_platform.attempt.contents import content_of
from canard_platform.attempt.failures import AttemptFailure
from canard_platform.attempt.stop import StopOrder

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class CheckpointFinder:
    """Takes the newest sound checkpoint of the task's earlier attempts, else what the user named."""

    api: AttemptApi
    stop: StopOrder
    folder: Path
    """Where fetched ones go."""
    local_paths: bool
    warn: Callable[[str], None]

    def find(self, spec: AttemptSpec) -> Path | None:
        """None means to start from scratch.

        Raises:
            AttemptFailure: what the user named is not there or not sound; the task would not be what was
                asked for without it.
            Stopped: the attempt must stop.
        """
        for candidate in spec.resume:
            try:
                return self._fetched(candidate)
            except (DownloadError, APIError, OSError) as error:
                self.warn(f"{candidate.filename} is not sound, so an older checkpoint is taken: {error}")
        if spec.resume and spec.start_from is None:
            self.warn("no checkpoint of the earlier attempts is sound; the training starts from scratch")
        if spec.start_from is None:
            return None
        try:
            return self._fetched(spec.start_from)
        except (DownloadError, APIError, OSError) as error:
            raise AttemptFailure(f"checkpoint_url: {error}", retryable=False) from None

    def _fetched(self, checkpoint: Checkpoint) -> Path:
        if checkpoint.local_path is not None:
            return self._local(checkpoint, Path(checkpoint.local_path))
        if checkpoint.url is None:
            raise DownloadError(f"{checkpoint.filename} has neither a URL nor a path")
        self.folder.mkdir(parents=True, exist_ok=True)
        target = self.folder / (Path(checkpoint.filename).name or "checkpoint.pt")
        try:
            patiently(self.stop.given)(self._download, checkpoint, checkpoint.url, target)
        except Exception as error:
            self.stop.check()
            if may_pass(error):
                raise AttemptFailure(f"{checkpoint.filename}: {error}", retryable=True) from None
            raise
        log.info("%s was fetched, %s bytes", target.name, target.stat().st_size)
        return target

    def _local(self, checkpoint: Checkpoint, path: Path) -> Path:
        if not self.local_paths:
            raise DownloadError("a path works only when the platform runs on the same machine")
        if not path.is_file():
            raise DownloadError(f"{path} is no file on this machine")
        content = content_of(path)
        _check(checkpoint, size_bytes=content.size_bytes, sha256=content.sha256)
        return path

    def _download(self, checkpoint: Checkpoint, url: str, target: Path) -> None:
        part = target.with_name(f"{target.name}.part")
        digest, size = hashlib.sha256(), 0
        with part.open("wb") as file:
            for chunk in self.api.download(url):
                self.stop.check()
                digest.update(chunk)
                size += len(chunk)
                file.write(chunk)
        _check(checkpoint, size_bytes=size, sha256=digest.hexdigest())
        os.replace(part, target)


def _check(checkpoint: Checkpoint, *, size_bytes: int, sha256: str) -> None:
    if checkpoint.size_bytes is not None and size_bytes != checkpoint.size_bytes:
        raise DownloadError(
            f"{checkpoint.filename} has {size_bytes} bytes, not the {checkpoint.size_bytes} it was saved with"
        )
    if checkpoint.sha256 is not None and sha256 != checkpoint.sha256:
        raise DownloadError(f"{checkpoint.filename} has another sha256 than it was saved with")
