"""The final report: on disk first, then told until it is taken once or refused."""

import logging
from pathlib import Path

from canard.errors import CanardError, InvalidRequestError, LeaseLostError
from canard.wire import AttemptReport
from canard_platform.attempt.api import AttemptApi, patiently
from canard_platform.attempt.stop import StopOrder, StopReason
from canard_platform.files import write_private

log = logging.getLogger(__name__)

PATIENCE_S = 24 * 3600.0
"""A platform that is away for longer has given the task to others, or is not coming back."""


def keep(report: AttemptReport, record: Path) -> None:
    """Write the report down; a full disk must not keep it from being told."""
    try:
        write_private(record, report.model_dump_json(indent=2) + "\n")
    except OSError as error:
        log.error("the report could not be kept: %s", error)


def deliver(
    report: AttemptReport, api: AttemptApi, stop: StopOrder, *, record: Path, longest_wait_s: float
) -> bool:
    """Whether the platform took it. The lease being lost is the one good reason not to."""
    while not stop.lost.is_set():
        keep(report, record)
        try:
            patiently(stop.lost, longest_wait_s=longest_wait_s, total_s=PATIENCE_S)(api.commit, report)
        except LeaseLostError as error:
            log.warning("the report was not taken: %s", error)
            stop.give(StopReason.LEASE_LOST)
        except (InvalidRequestError, ValueError) as error:
            log.error("the report was refused: %s", error)
            if report.outcome == "failed":
                return False
            # Without its result the attempt was worth nothing; said so, the task gets another one.
            message = f"the platform refused the result: {error}"
            report = AttemptReport(outcome="failed", exit_code=report.exit_code, error=message)
        except CanardError as error:
            log.error("the report could not be delivered: %s", error)
            return False
        else:
            log.info("the attempt is reported as %s", report.outcome)
            return True
    return False
