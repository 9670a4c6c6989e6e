"""What an upload sends: bytes whose number and sha256 are known before the first is sent."""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

CHUNK_BYTES = 2**20


class Content(Protocol):
    """The same bytes each time it is read."""

    @property
    def size_bytes(self) -> int: ...

    @property
    def sha256(self) -> str: ...

    def chunks(self) -> Iterator[bytes]: ...


@dataclass(frozen=True, kw_only=True)
class FileContent:
    """A file as long as it was when looked at; what is appended meanwhile is not part of it."""

    path: Path
    size_bytes: int
    sha256: str

    def chunks(self) -> Iterator[bytes]:
        yield from _read(self.path, self.size_bytes)


@dataclass(frozen=True, kw_only=True)
class TextContent:
    data: bytes
    size_bytes: int
    sha256: str

    def chunks(self) -> Iterator[bytes]:
        yield self.data


def content_of(path: Path) -> FileContent:
    """Raises FileNotFoundError (an OSError) if it is not there."""
    size = path.stat().st_size
    digest = hashlib.sha256()
    for chunk in _read(path, size):
        digest.update(chunk)
    return FileContent(path=path, size_bytes=size, sha256=digest.hexdigest())


def end_of(path: Path, *, most_bytes: int) -> TextContent:
    """The file, or its end under a line that says what is missing."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        left_out = max(0, size - most_bytes)
        file.seek(left_out)
        data = file.read(most_bytes)
    if left_out:
        data = f"[{left_out} bytes before this are left out]\n".encode() + data
    return TextContent(data=data, size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


def _read(path: Path, size: int) -> Iterator[bytes]:
    left = size
    with path.open("rb") as file:
        while left > 0 and (chunk := file.read(min(CHUNK_BYTES, left))):
            left -= len(chunk)
            yield chunk
