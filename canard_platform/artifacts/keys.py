"""Names of artifacts: which are safe, and how a key is made of them.

The same rules hold for every store, so that what one accepts the other can take over: they are the
intersection of what a file system and S3 can hold.
"""

import unicodedata

from canard.errors import InvalidRequestError

MOST_SEGMENT_BYTES = 255
MOST_KEY_BYTES = 1024


def checked(path: str, *, field: str = "path") -> str:
    """The path itself, when every store can hold it and it cannot leave its folder.

    Raises:
        InvalidRequestError: naming what is wrong with it.
    """
    problem = _problem(path)
    if problem:
        raise InvalidRequestError(f"{field}: {path[:80]!r} {problem}", field=field)
    return path


def attempt_key(run_slug: str, task_id: int, attempt: int, path: str) -> str:
    """Where a file of an attempt lies; the attempt is part of it, so no attempt can touch another's."""
    return checked(f"runs/{run_slug}/tasks/{task_id}/attempt-{attempt}/{checked(path)}")


def filename(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _problem(path: str) -> str | None:
    if any(unicodedata.category(character) in {"Cc", "Cs"} for character in path):
        return "has a control character"
    if path.startswith("/") or "\\" in path:
        return "must be relative, with '/' between its parts"
    segments = path.split("/")
    if any(segment in {"", ".", ".."} for segment in segments):
        return "has an empty part, '.' or '..'"
    if any(len(segment.encode()) > MOST_SEGMENT_BYTES for segment in segments):
        return f"has a part longer than {MOST_SEGMENT_BYTES} bytes"
    if len(path.encode()) > MOST_KEY_BYTES:
        return f"is longer than {MOST_KEY_BYTES} bytes"
    return None
