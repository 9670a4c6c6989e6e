"""Reading events.jsonl while it is written."""

import json
import logging
import math
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

CHUNK_BYTES = 2**18
MOST_LINE_BYTES = 2**20


class EventTail:
    """Each whole line once, in order; the last, partial one is held back until it is whole."""

    def __init__(self, path: Path, *, chunk_bytes: int = CHUNK_BYTES) -> None:
        self._path = path
        self._chunk_bytes = chunk_bytes
        self._offset = 0
        self._held = b""
        self._too_long = False

    def read(self) -> list[dict[str, Any]]:
        """The events of the next chunk; an empty list when there is nothing new and whole.

        A chunk may lie within one long line, so ask `at_end` whether that was all.
        """
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                chunk = file.read(self._chunk_bytes)
        except FileNotFoundError:
            return []
        self._offset += len(chunk)
        *whole, rest = (self._held + chunk).split(b"\n")
        if self._too_long and whole:
            del whole[0]
            self._too_long = False
        if len(rest) > MOST_LINE_BYTES:
            log.warning("%s: a line over %d bytes is left out", self._path.name, MOST_LINE_BYTES)
            rest, self._too_long = b"", True
        self._held = rest
        return [event for line in whole if (event := self._parsed(line)) is not None]

    @property
    def position(self) -> int:
        """Where in the file the lines end that were read whole."""
        return self._offset - len(self._held)

    def at_end(self) -> bool:
        """Whether all that is in the file was read."""
        try:
            return self._offset >= self._path.stat().st_size
        except FileNotFoundError:
            return True

    def _parsed(self, line: bytes) -> dict[str, Any] | None:
        if not line.strip():
            return None
        try:
            event = json.loads(line, **without_nonfinite())
        except (ValueError, RecursionError):
            log.warning("%s: a line is no JSON: %.200r", self._path.name, line)
            return None
        return event if isinstance(event, dict) else None


def without_nonfinite() -> dict[str, Any]:
    """Arguments of json.loads that make null of what is no JSON, though Python takes it."""
    return {"parse_constant": _nothing, "parse_float": _finite}


def _nothing(_: str) -> None:
    return None


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None
