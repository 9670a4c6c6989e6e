"""events.jsonl: what happened, one JSON object a line, appended and never changed."""

import json
import math
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


class EventLog:
    """Appends to one file; each line reaches the file before `emit` returns.

    Args:
        failures_only: for a rank beside the first, which tells nothing but its own end.
    """

    def __init__(self, path: Path, *, failures_only: bool = False) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        torn = not failures_only and _ends_within_a_line(path)
        self._path = path
        self._failures_only = failures_only
        self._start = path.stat().st_size if path.exists() else 0
        self._file = path.open("a", encoding="utf-8")
        if torn:
            self._file.write("\n")

    def emit(self, event: str, **fields: Any) -> None:
        """Write one event. A number that JSON cannot say becomes null; `nonfinite` lists its key.

        A warning is said on stderr too: that is kept with the attempt, where people look.
        """
        if self._failures_only and event != "failed":
            return
        said, nonfinite = finite_only(fields)
        line: dict[str, Any] = {"event": event, "time": datetime.now(UTC).isoformat(), **said}
        if nonfinite:
            line["nonfinite"] = nonfinite
        self._file.write(json.dumps(line, allow_nan=False) + "\n")
        self._file.flush()
        if event == "warning":
            print(f"trainer: warning: {fields['message']}", file=sys.stderr, flush=True)  # noqa: T201

    def has_failure(self) -> bool:
        """Whether a process has told a failure here since this log was opened."""
        with self._path.open(encoding="utf-8") as file:
            file.seek(self._start)
            return any('"event": "failed"' in line for line in file)

    def close(self) -> None:
        self._file.close()


def _ends_within_a_line(path: Path) -> bool:
    """Whether an earlier process was killed while it wrote."""
    if not path.exists() or not path.stat().st_size:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def finite_only(fields: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The same fields with null for what is not finite, and the dotted names of those."""
    said: dict[str, Any] = {}
    nonfinite: list[str] = []
    for name, value in fields.items():
        if isinstance(value, dict):
            said[name], inner = finite_only(value)
            nonfinite += [f"{name}.{key}" for key in inner]
        elif isinstance(value, float) and not math.isfinite(value):
            said[name] = None
            nonfinite.append(name)
        else:
            said[name] = value
    return said, nonfinite
