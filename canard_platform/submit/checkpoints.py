"""What checkpoint_url names: an artifact of the same owner, or a file of this machine."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sqlalchemy.orm import Session

from canard.errors import InvalidRequestError, NotFoundError
from canard_platform.store.artifacts import find_artifact
from canard_platform.store.runs import owned_run

_ARTIFACT = re.compile(r"(?:s3://[^/]+/)?(runs/([^/]+)/.+)", re.DOTALL)
ACCEPTED = "write s3://<bucket>/runs/<run>/checkpoints/model_<N>.pt, or runs/... as list_artifacts shows it"


def resolve_checkpoint(session: Session, url: str, *, user_id: int, local_paths: bool) -> dict[str, Any]:
    """{"key": ...} of an artifact or {"path": ...} on this machine.

    Raises:
        InvalidRequestError: naming checkpoint_url, and listing what exists.
    """
    named = _ARTIFACT.fullmatch(url)
    if named:
        key, slug = named.groups()
        try:
            artifact = find_artifact(session, owned_run(session, user_id, slug), key)
        except NotFoundError as error:
            raise _refused(error.message, error.hint) from None
        if artifact.artifact_type != "checkpoint":
            raise _refused(f"{key} is a {artifact.artifact_type}, not a checkpoint", None)
        return {"key": artifact.key}
    path = _path(url)
    if path is None:
        raise _refused(f"{url[:200]!r} is no address of a checkpoint", ACCEPTED)
    if not local_paths:
        raise _refused("a path works only when the platform runs on the same machine", ACCEPTED)
    if not path.is_file():
        raise _refused(f"{path} is no file on the platform's machine", _beside(path))
    return {"path": str(path)}


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
