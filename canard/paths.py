"""Paths that are said to a platform."""

import os
from pathlib import Path
from typing import Any


def absolute_if_it_is_a_path(url: Any) -> Any:
    """A path on this machine means the same to the platform only when it is absolute; URLs stay."""
    if not isinstance(url, str | os.PathLike):
        return url
    text = os.fspath(url)
    if not isinstance(text, str) or not text or "://" in text:
        return text
    path = Path(text).expanduser()
    return str(path.absolute()) if path.exists() else text
