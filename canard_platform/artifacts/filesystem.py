"""Artifacts as files under one folder, behind URLs that the API signs itself.

An upload is checked for size and sha256 while it streams in, and waits as `.incoming/<key's hash>.<sha256>`
until `commit` renames it into place: a reader never sees half a file, nor bytes that no row announces.
"""

import contextlib
import hashlib
import os
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from canard.errors import ArtifactNotFoundError, ConflictError, InvalidRequestError
from canard_platform.artifacts.keys import checked
from canard_platform.artifacts.signing import Grant, Method, Signer
from canard_platform.artifacts.store import SignedUrl
from canard_platform.clock import Clock

INCOMING = ".incoming"
CHUNK_BYTES = 2**20


class FilesystemStore:
    """Implements ArtifactStore; `receive`, `path` and `read_grant` serve the API's blob routes."""

    def __init__(self, root: Path, *, signer: Signer, base_url: str, url_ttl_s: float, clock: Clock) -> None:
        self._root = root
        self._incoming = root / INCOMING
        self._incoming.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._signer = signer
        self._base_url = base_url
        self._ttl = timedelta(seconds=url_ttl_s)
        self._clock = clock

    def upload_url(self, key: str, *, size_bytes: int, sha256: str) -> SignedUrl:
        expires_at = self._clock.now() + self._ttl
        return self._signed(
            Grant(
                method="PUT",
                key=checked(key),
                size_bytes=size_bytes,
                sha256=sha256,
                expires=expires_at.timestamp(),
            ),
            expires_at,
        )

    def download_url(self, key: str, *, filename: str) -> SignedUrl:
        expires_at = self._clock.now() + self._ttl
        grant = Grant(method="GET", key=checked(key), filename=filename, expires=expires_at.timestamp())
        return self._signed(grant, expires_at)

    def commit(self, key: str, *, size_bytes: int, sha256: str) -> None:
        staged, target = self._staged(key, sha256), self.path(key)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(staged, target)
        except FileNotFoundError:
            if not _is_content(target, size_bytes, sha256):
                raise InvalidRequestError(
                    f"{key} was not received", field="path", hint="PUT it to the URL of its upload first"
                ) from None
        except (IsADirectoryError, NotADirectoryError, FileExistsError):
            raise ConflictError(f"{key} is both a file and a folder", field="path") from None
        _sync_folder(target.parent)

    def open(self, key: str) -> BinaryIO:
        try:
            return self.path(key).open("rb")
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise ArtifactNotFoundError(f"no artifact under {key}") from None

    def path(self, key: str) -> Path:
        return self._root / checked(key)

    def read_grant(self, token: str, *, method: Method) -> Grant:
        return self._signer.read(token, method=method, now=self._clock.now())

    def receive(self, grant: Grant) -> "Upload":
        return Upload(self._incoming, self._staged(grant.key, grant.sha256), grant)

    def sweep(self, *, older_than: datetime) -> int:
        """Drop uploads that nobody committed; returns how many."""
        swept = 0
        for file in self._incoming.iterdir():
            with contextlib.suppress(FileNotFoundError):
                if file.stat().st_mtime < older_than.timestamp():
                    file.unlink()
                    swept += 1
        return swept

    def _signed(self, grant: Grant, expires_at: datetime) -> SignedUrl:
        return SignedUrl(url=f"{self._base_url}/v1/blobs/{self._signer.sign(grant)}", expires_at=expires_at)

    def _staged(self, key: str, sha256: str) -> Path:
        return self._incoming / f"{hashlib.sha256(key.encode()).hexdigest()}.{sha256}"


class Upload:
    """One file coming in; only `finish` leaves something behind."""

    def __init__(self, folder: Path, target: Path, grant: Grant) -> None:
        descriptor, name = tempfile.mkstemp(dir=folder, prefix="part-")
        self._file = os.fdopen(descriptor, "wb")
        self._part = Path(name)
        self._target = target
        self._grant = grant
        self._hash = hashlib.sha256()
        self._size = 0

    def write(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size > self._grant.size_bytes:
            raise InvalidRequestError(
                f"more bytes than the {self._grant.size_bytes} that were announced", field="size_bytes"
            )
        self._hash.update(chunk)
        self._file.write(chunk)

    def finish(self) -> None:
        """Check and keep it.

        Raises:
            InvalidRequestError: it is shorter than announced, or other bytes.
        """
        if self._size != self._grant.size_bytes:
            raise InvalidRequestError(
                f"{self._size} bytes received, {self._grant.size_bytes} announced", field="size_bytes"
            )
        if self._hash.hexdigest() != self._grant.sha256:
            raise InvalidRequestError("the bytes received have another sha256", field="sha256")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        os.replace(self._part, self._target)

    def close(self) -> None:
        self._file.close()
        self._part.unlink(missing_ok=True)


def _is_content(path: Path, size_bytes: int, sha256: str) -> bool:
    try:
        with path.open("rb") as file:
            return (
                os.fstat(file.fileno()).st_size == size_bytes
                and hashlib.file_digest(file, "sha256").hexdigest() == sha256
            )
    except OSError:
        return False


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
