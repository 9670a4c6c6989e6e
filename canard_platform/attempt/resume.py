"""The checkpoints to go on from, fetched and found whole before the trainer sees them."""

import hashlib
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from canard.errors import APIError, ConnectionFailedError, DownloadError
from canard.wire import AttemptSpec, Checkpoint
from canard_platform.attempt.api import AttemptApi, may_pass, patiently
from canard_platform.attempt.contents import content_of
from canard_platform.attempt.failures import AttemptFailure
from canard_platform.attempt.stop import StopOrder

log = logging.getLogger(__name__)

MOST_CANDIDATES = 3
"""Of the task's own: a whole one can still hold numbers that are not finite, and then an older one helps."""
SPARE_PATIENCE_S = 10.0
"""How long to try for a checkpoint that is needed only if the trainer refuses the ones before it."""

NOT_FETCHED = (DownloadError, APIError, ConnectionFailedError, OSError)


@dataclass(frozen=True, kw_only=True)
class CheckpointFinder:
    """Takes the newest whole checkpoints of the task's earlier attempts, and last what the user named."""

    api: AttemptApi
    stop: StopOrder
    folder: Path
    """Where fetched ones go."""
    local_paths: bool
    warn: Callable[[str], None]

    def find(self, spec: AttemptSpec) -> list[Path]:
        """Newest first: the trainer goes on from the first that it can; none means to start from scratch.

        Raises:
            AttemptFailure: what the user named is all there is, and is not there or not whole; the task would
                not be what was asked for without it.
            Stopped: the attempt must stop.
        """
        found = self._own(spec.resume)
        if spec.resume and not found:
            start = "from checkpoint_url" if spec.start_from is not None else "from scratch"
            self.warn(f"no checkpoint of the earlier attempts is sound; the training starts {start}")
        if spec.start_from is None:
            return found
        try:
            return [*found, self._fetched(spec.start_from, place="named", spare=bool(found))]
        except NOT_FETCHED as error:
            if found:
                log.info("checkpoint_url was not fetched: %s", error)
                return found
            raise AttemptFailure(f"checkpoint_url: {error}", retryable=False) from None

    def _own(self, candidates: Sequence[Checkpoint]) -> list[Path]:
        found: list[Path] = []
        for number, candidate in enumerate(candidates, start=1):
            try:
                found.append(self._fetched(candidate, place=str(number), spare=bool(found)))
            except NOT_FETCHED as error:
                if found:
                    log.info("%s was not fetched: %s", candidate.filename, error)
                else:
                    self.warn(f"{candidate.filename} is not sound, so an older checkpoint is taken: {error}")
            if len(found) == MOST_CANDIDATES:
                break
        return found

    def _fetched(self, checkpoint: Checkpoint, *, place: str, spare: bool) -> Path:
        if checkpoint.local_path is not None:
            return self._local(checkpoint, Path(checkpoint.local_path))
        if checkpoint.url is None:
            raise DownloadError(f"{checkpoint.filename} has neither a URL nor a path")
        # Attempts can have checkpoints of one name.
        folder = self.folder / place
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / (Path(checkpoint.filename).name or "checkpoint.pt")
        patience_s = SPARE_PATIENCE_S if spare else None
        try:
            patiently(self.stop.given, total_s=patience_s)(self._download, checkpoint, checkpoint.url, target)
        except Exception as error:
            self.stop.check()
            if may_pass(error) and not spare:
                raise AttemptFailure(f"{checkpoint.filename}: {error}", retryable=True) from None
            raise
        log.info("%s was fetched, %s bytes", target.name, target.stat().st_size)
        return target

    def _local(self, checkpoint: Checkpoint, path: Path) -> Path:
        if not self.local_paths:
            raise DownloadError("a path works only when the platform runs on the same machine")
        if not path.is_file():
            raise DownloadError(f"{path} is no file on this machine")
        if checkpoint.sha256 is not None and content_of(path).sha256 != checkpoint.sha256:
            raise DownloadError(f"{path} has changed since the submit, which noted its sha256; submit again")
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
