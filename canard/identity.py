"""Content identity: two members that are the same training have the same one, however they were written.

It is a hash of what decides about the result: every field of the resolved config, the pinned commit in place
of the name that led to it, the checkpoint's content in place of its address, and the version of the trainer.
"""

import hashlib
import json
import posixpath
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

STOOD_FOR = frozenset({"code_ref", "code_url", "checkpoint_url"})
"""Fields that only say where something is: commit, repository and checkpoint stand for them."""

EXACT = 2**53
"""Below it a float and the integer that it equals are the same number."""

_DEFAULT_PORTS = {"https": 443, "ssh": 22}


def content_identity(
    config: Mapping[str, Any],
    *,
    mode: str,
    version: str,
    commit: str | None = None,
    checkpoint: str | None = None,
) -> str:
    """64 hexadecimal digits.

    Args:
        config: every field of a resolved TrainingConfig or PhysicsConfig, as plain JSON.
        mode: training or physics.
        version: of the trainer.
        commit: full SHA of the code; needed when the config has a code_url.
        checkpoint: sha256 of the file to start from; needed when the config has a checkpoint_url.

    Raises:
        ValueError: the config names code or a checkpoint whose content was not said.
    """
    for field, content in (("code_url", commit), ("checkpoint_url", checkpoint)):
        if config.get(field) is not None and content is None:
            raise ValueError(f"{field} names something whose content is not known")
    repository = config.get("code_url")
    fields = {
        name: _plain(value) for name, value in config.items() if value is not None and name not in STOOD_FOR
    }
    said = {
        "mode": mode,
        "version": version,
        "repository": None if repository is None else repository_name(repository),
        "commit": None if repository is None else commit,
        "checkpoint": checkpoint,
        "config": {name: value for name, value in fields.items() if value != {}},
    }
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def repository_name(url: str) -> str:
    """One spelling for `https://host/a/b`, `ssh://git@host/a/b.git` and `git@host:a/b`; a path made plain."""
    if url.startswith("/"):
        return posixpath.normpath(url)
    if "://" not in url:
        host, _, path = url.partition(":")
        return f"{host.rpartition('@')[2].lower()}/{_trimmed(path)}"
    parts = urlsplit(url)
    port = "" if parts.port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{parts.port}"
    return f"{(parts.hostname or '').lower()}{port}/{_trimmed(parts.path)}"


def _trimmed(path: str) -> str:
    return path.strip("/").removesuffix(".git")


def _plain(value: Any) -> Any:
    """Numbers that are equal become the same text: 1.0 is 1, and -0.0 is 0."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < EXACT else value
    if isinstance(value, str | int):
        return value
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value
