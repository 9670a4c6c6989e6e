"""The table from the end of a trainer to the report."""

import pytest

from canard_platform.attempt.outcome import TrainerEnd, end_of_log, read_summary, report_of
from canard_platform.attempt.stop import StopReason

SUMMARY = {"status": "completed", "iteration": 3}


def end(exit_code: int, **said) -> TrainerEnd:
    return TrainerEnd(
        exit_code=exit_code, **{"summary": None, "stop": None, "failure": None, "log": "", **said}
    )


@pytest.mark.parametrize(
    ("ended", "outcome", "retryable"),
    [
        (end(0, summary=SUMMARY), "completed", True),
        (end(-9, summary=SUMMARY), "completed", True),
        (end(0, summary=SUMMARY, stop=StopReason.CANCEL), "completed", True),
        (end(0), "failed", True),
        (end(1), "failed", True),
        (end(-11), "failed", True),
        (end(2), "failed", False),
        (end(3), "failed", False),
        (end(2, stop=StopReason.PREEMPT), "failed", False),
        (end(75), "preempted", True),
        (end(75, stop=StopReason.PREEMPT), "preempted", True),
        (end(-15, stop=StopReason.PREEMPT), "preempted", True),
        (end(-9, stop=StopReason.UNRENEWED), "preempted", True),
        (end(75, stop=StopReason.CANCEL), "cancelled", True),
        (end(-9, stop=StopReason.CANCEL), "cancelled", True),
    ],
)
def test_the_end_marker_decides_then_the_order_then_the_exit_code(ended, outcome, retryable):
    report = report_of(ended)

    assert report.outcome == outcome
    assert report.retryable is retryable
    assert (report.summary is not None) is (outcome == "completed")
    assert (report.error is not None) is (outcome == "failed")


@pytest.mark.parametrize(
    ("ended", "line"),
    [
        (end(2, failure="task_name: no such task"), "task_name: no such task"),
        (end(1, log="Traceback\nValueError: x\n"), "the trainer ended with exit code 1: ValueError: x"),
        (end(1, failure="a\nb", log="c"), "the trainer ended with exit code 1: a b"),
        (
            end(-9, log="iteration 5"),
            "the trainer was ended by SIGKILL (often: the machine ran out of memory)",
        ),
        (end(-11), "the trainer was ended by SIGSEGV"),
    ],
)
def test_the_first_line_says_why(ended, line):
    assert (report_of(ended).error or "").splitlines()[0] == line


def test_an_error_always_fits_the_wire():
    report = report_of(end(1, failure="f" * 50_000 + "\0\ud800", log="\0l\ud800" * 50_000))

    assert len(report.error or "") < 20_000
    assert "\0" not in (report.error or "")
    assert report.model_dump_json()


def test_half_a_summary_is_no_end_marker(tmp_path):
    path = tmp_path / "summary.json"
    assert read_summary(path) is None
    path.write_text('{"status": "compl')
    assert read_summary(path) is None
    path.write_text('{"mean_reward": NaN}')
    assert read_summary(path) == {"mean_reward": None}


def test_a_log_that_is_not_there_is_empty(tmp_path):
    assert end_of_log(tmp_path / "trainer.log") == ""
