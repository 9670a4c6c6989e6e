"""What the end of a trainer means: a table from exit code, end marker and stop order to the report."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from canard.wire import AttemptReport, Outcome
from canard_platform.attempt.failures import AttemptFailure
from canard_platform.attempt.stop import StopReason
from canard_platform.attempt.symptoms import ended, recognised
from canard_platform.attempt.tail import without_nonfinite

WRONG_CONFIG = 2
DIVERGED = 3
STOPPED = 75
MOST_LOG_CHARS = 6000
MOST_LINE_CHARS = 2000
LOG_BYTES = 2**16


@dataclass(frozen=True, kw_only=True)
class TrainerEnd:
    """What is known when the trainer's process is gone."""

    exit_code: int
    summary: dict[str, Any] | None
    """summary.json, the end marker; None where it is missing or not whole."""
    stop: StopReason | None
    """Why it was asked to stop, if it was."""
    failure: str | None
    """Message of its last `failed` event."""
    log: str
    """The end of what it printed."""


def report_of(end: TrainerEnd) -> AttemptReport:
    """The end marker decides, then the stop order, then the exit code."""
    if end.summary is not None:
        return AttemptReport(outcome="completed", exit_code=end.exit_code, summary=end.summary)
    if end.stop is StopReason.CANCEL:
        return AttemptReport(outcome="cancelled", exit_code=end.exit_code)
    if end.exit_code in (WRONG_CONFIG, DIVERGED):
        return _failed(end, end.failure or last_line(end.log) or ended(end.exit_code), retryable=False)
    if end.exit_code == STOPPED or end.stop is not None:
        return AttemptReport(outcome="preempted", exit_code=end.exit_code)
    if end.exit_code == 0:
        line = "the trainer ended without its end marker (summary.json), though with exit code 0"
        return _failed(end, line, retryable=True)
    return _failed(end, _crash(end), retryable=True)


def report_of_failure(failure: AttemptFailure) -> AttemptReport:
    """An attempt that ended before or beside its trainer."""
    return AttemptReport(
        outcome="failed", error=_error(failure.message, failure.detail), retryable=failure.retryable
    )


def report_of_stop(reason: StopReason | None) -> AttemptReport:
    """An attempt that was stopped while it had no trainer."""
    outcome: Outcome = "cancelled" if reason is StopReason.CANCEL else "preempted"
    return AttemptReport(outcome=outcome)


def read_summary(path: Path) -> dict[str, Any] | None:
    """The end marker, if it is there and whole."""
    try:
        summary = json.loads(path.read_bytes(), **without_nonfinite())
    except (OSError, ValueError, RecursionError):
        return None
    return summary if isinstance(summary, dict) else None


def end_of_log(path: Path) -> str:
    """The last part of a log as text, empty where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LOG_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _crash(end: TrainerEnd) -> str:
    known = recognised(f"{end.failure or ''}\n{end.log}")
    said = end.failure or (last_line(end.log) if end.exit_code > 0 else "")
    line = f"the trainer {ended(end.exit_code)}"
    return ": ".join(part for part in (known or line, said) if part)


def _failed(end: TrainerEnd, line: str, *, retryable: bool) -> AttemptReport:
    return AttemptReport(
        outcome="failed", exit_code=end.exit_code, error=_error(line, end.log), retryable=retryable
    )


def _error(line: str, detail: str) -> str:
    """One line, then what led to it, as the wire can carry it."""
    first = " ".join(line.split())[:MOST_LINE_CHARS]
    rest = detail.strip()[-MOST_LOG_CHARS:]
    text = f"{first}\n\n{rest}" if rest else first
    return text.replace("\0", "").encode(errors="replace").decode()
