"""What checkpoint_url names: an artifact of the same owner, or a file of this machine.

Either way its content is noted, so that the task starts from what was there when it was submitted.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sqlalchemy.orm import Session

from canard.errors import InvalidRequestError, NotFoundError
from canard_platform.store.artifacts import find_artifact
from canard_platform.store.database import Database
from canard_platform.store.runs import owned_run

_ARTIFACT = re.compile(r"(?:s3://[^/]+/)?(runs/([^/]+)/.+)", re.DOTALL)
ACCEPTED = "write s3://<bucket>/runs/<run>/checkpoints/model_<N>.pt, or runs/... as list_artifacts shows it"


def resolve_checkpoints(
    database: Database, urls: Iterable[str], *, user_id: int, local_paths: bool
) -> Mapping[str, dict[str, Any]]:
    """{"key": ...} of an artifact or {"path": ...} on this machine, and its {"sha256": ...}, by URL.

    Raises:
        InvalidRequestError: naming checkpoint_url, and listing what exists.
    """
    found = {}
    artifacts = []
    for url in urls:
        if _ARTIFACT.fullmatch(url):
            artifacts.append(url)
        else:
            found[url] = _file(url, local_paths=local_paths)
    if artifacts:
        with database.read() as session:
            found |= {url: _artifact(session, url, user_id=user_id) for url in artifacts}
    return found


def _artifact(session: Session, url: str, *, user_id: int) -> dict[str, Any]:
    named = _ARTIFACT.fullmatch(url)
    assert named is not None  # noqa: S101 - only such are asked for
    key, slug = named.groups()
    try:
        artifact = find_artifact(session, owned_run(session, user_id, slug), key)
    except NotFoundError as error:
        raise _refused(error.message, error.hint) from None
    if artifact.artifact_type != "checkpoint":
        raise _refused(f"{key} is a {artifact.artifact_type}, not a checkpoint", None)
    return {"key": artifact.key, "sha256": artifact.sha256}


def _file(url: str, *, local_paths: bool) -> dict[str, Any]:
    path = _path(url)
    if path is None:
        raise _refused(f"{url[:200]!r} is no address of a checkpoint", ACCEPTED)
    if not local_paths:
        raise _refused("a path works only when the platform runs on the same machine", ACCEPTED)
    if not path.is_file():
        raise _refused(f"{path} is no file on the platform's machine", _beside(path))
    try:
        with path.open("rb") as file:
            return {"path": str(path), "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
    except OSError as error:
        raise _refused(f"{path} cannot be read by the platform ({error.strerror})", None) from None


def _path(url: str) -> Path | None:
    if url.startswith("/"):
        return Path(url)
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme == "file" and parts.netloc in {"", "localhost"} and parts.path.startswith("/"):
        return Path(unquote(parts.path))
    return None


def _beside(path: Path) -> str | None:
    """The checkpoints in the same folder, so that a mistyped number shows."""
    try:
        names = sorted(file.name for file in path.parent.glob("*.pt"))[:10]
    except (OSError, ValueError):
        return None
    return f"there is: {', '.join(names)}" if names else None


def _refused(what: str, hint: str | None) -> InvalidRequestError:
    return InvalidRequestError(f"checkpoint_url: {what}", field="checkpoint_url", hint=hint)
