"""Files that are whole or absent, whenever the process is killed."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

CHUNK_BYTES = 1 << 20


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in place in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.tmp")
    write(temporary)
    with temporary.open("rb+") as file:
        os.fsync(file.fileno())
    temporary.replace(path)
    _fsync_folder(path.parent)


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _fsync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
