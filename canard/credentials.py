"""API keys: where they are kept and which one counts.

An explicit key wins, then `$CANARD_API_KEY`, then the key that `credentials.json` under `canard_home()` has
for this platform. The file is only for its owner: it is written with mode 0600 and refused when others can
read it.
"""

import json
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from canard.api_url import origin
from canard.errors import CredentialsError
from canard.home import canard_home

ENVIRONMENT_VARIABLE = "CANARD_API_KEY"
FILE_VERSION = 1
LOCK_TIMEOUT_S = 10

Source = Literal["argument", "environment", "file"]


@dataclass(frozen=True, kw_only=True)
class FoundKey:
    """A key and where it came from; the key never shows in a repr."""

    value: str = field(repr=False)
    source: Source
    told: str
    """The source in words, for an error that has to say which key was refused."""


def credentials_path(home: Path | None = None) -> Path:
    """The credentials file, whether or not it exists."""
    return (home or canard_home()) / "credentials.json"


def find_key(api_url: str, explicit: str | None = None, *, home: Path | None = None) -> FoundKey:
    """The key for the platform at `api_url`.

    Raises:
        CredentialsError: there is none, it cannot be a key, or its file is open to others or broken.
    """
    if explicit is not None:
        return _found(explicit, "argument", "the api_key argument")
    said = os.environ.get(ENVIRONMENT_VARIABLE, "").strip()
    if said:
        return _found(said, "environment", ENVIRONMENT_VARIABLE)
    path = credentials_path(home)
    kept = kept_key(api_url, home=home)
    if kept is None:
        raise CredentialsError(
            f"no API key for {origin(api_url)}: pass api_key=..., or set {ENVIRONMENT_VARIABLE}"
            f" ({path} has none for it; `canard up` writes one for a platform on this machine)"
        )
    return _found(kept, "file", str(path))


def kept_key(api_url: str, *, home: Path | None = None) -> str | None:
    """The key that the file has for the platform at `api_url`, whatever the environment says.

    Raises:
        CredentialsError: the file is open to others or broken.
    """
    return _read(credentials_path(home)).get(origin(api_url))


def store_key(api_url: str, key: str, *, home: Path | None = None) -> None:
    """Keep `key` for the platform at `api_url`, in place of the one before.

    Raises:
        CredentialsError: the file cannot be written, is broken, or is open to others.
    """
    path = credentials_path(home)
    key = _checked(key, "the key to store")
    with _locked(path):
        _write(path, {**_read(path), origin(api_url): key})


def forget_key(api_url: str, *, home: Path | None = None) -> None:
    """Drop the key for the platform at `api_url`; none there is no error."""
    path = credentials_path(home)
    if not path.exists():
        return
    with _locked(path):
        keys = _read(path)
        if keys.pop(origin(api_url), None) is not None:
            _write(path, keys)


def _found(key: str, source: Source, told: str) -> FoundKey:
    return FoundKey(value=_checked(key, told), source=source, told=told)


def _checked(key: str, where: str) -> str:
    key = key.strip()
    if not key:
        raise CredentialsError(f"{where} is empty; leave it out to use {ENVIRONMENT_VARIABLE} or the file")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise CredentialsError(f"{where} is no API key: it has characters that a key cannot have")
    return key


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Reading and writing the file as one step, whoever else does the same."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(path.with_suffix(".lock"), timeout=LOCK_TIMEOUT_S):
            yield
    except Timeout:
        raise CredentialsError(f"{path} is locked by another process; try again") from None
    except OSError as error:
        raise CredentialsError(f"{path} cannot be written: {error.strerror or error}") from error


def _read(path: Path) -> dict[str, str]:
    try:
        with path.open(encoding="utf-8") as file:
            _refuse_wide_permissions(path, os.fstat(file.fileno()))
            content = json.load(file)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise CredentialsError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise CredentialsError(f"{path} is no JSON ({error}); delete it and store the key again") from error
    return _keys(path, content)


def _refuse_wide_permissions(path: Path, status: os.stat_result) -> None:
    mode = stat.S_IMODE(status.st_mode)
    if os.name == "posix" and mode & 0o077:
        raise CredentialsError(
            f"{path} can be read or written by others (mode {mode:04o}); type: chmod 600 {path}"
        )


def _keys(path: Path, content: Any) -> dict[str, str]:
    version = content.get("version") if isinstance(content, dict) else None
    if isinstance(version, int) and version > FILE_VERSION:
        raise CredentialsError(f"{path} was written by a newer version of Canard; upgrade canard-hydra")
    keys = content.get("keys") if isinstance(content, dict) else None
    if not isinstance(keys, dict) or not all(isinstance(key, str) for key in keys.values()):
        raise CredentialsError(f"{path} is no credentials file of Canard; delete it and store the key again")
    return keys


def _write(path: Path, keys: dict[str, str]) -> None:
    """All or nothing, and never readable by others: a private temporary file renamed into place."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump({"version": FILE_VERSION, "keys": keys}, file, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
