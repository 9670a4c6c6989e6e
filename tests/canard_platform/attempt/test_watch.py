"""The trainer watched, with real processes."""

import sys
import time

from canard_platform.attempt.lease import Lease
from canard_platform.attempt.stop import StopOrder, StopReason
from canard_platform.attempt.trainer_process import TrainerProcess
from canard_platform.attempt.watch import Watch

DEAF = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(sys.argv[1]).touch()
time.sleep(600)
"""


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def deaf_process(tmp_path, name: str) -> TrainerProcess:
    return TrainerProcess(
        [sys.executable, "-c", DEAF, str(tmp_path / name)],
        attempt_id="att_watched",
        cwd=tmp_path,
        env={},
        log_file=tmp_path / "trainer.log",
    )


def test_a_trainer_that_wrote_its_end_marker_and_hangs_is_ended(tmp_path):
    watch = Watch(
        stop=StopOrder(),
        lease=Lease(600, asked_at=time.monotonic()),
        end_marker=tmp_path / "summary.json",
        each_tick=lambda: None,
        hang_s=0.2,
    )

    assert watch.until_it_ends(deaf_process(tmp_path, "summary.json")) == -9


def test_an_order_to_stop_is_cut_short_by_the_end_of_the_lease(tmp_path):
    clock, stop = Clock(), StopOrder()
    lease = Lease(60, asked_at=0.0, clock=clock)

    def lease_runs_out_once_it_is_deaf() -> None:
        if (tmp_path / "deaf").exists():
            stop.give(StopReason.PREEMPT)
            clock.now = 58.5

    watch = Watch(
        stop=stop,
        lease=lease,
        end_marker=tmp_path / "summary.json",
        each_tick=lease_runs_out_once_it_is_deaf,
    )

    assert watch.until_it_ends(deaf_process(tmp_path, "deaf")) == -9


def test_the_lease_is_counted_from_when_its_renewal_was_asked_for():
    clock = Clock()
    lease = Lease(60, asked_at=0.0, clock=clock)
    clock.now = 49.0
    assert not lease.must_stop()
    clock.now = 50.0
    assert lease.must_stop()
    assert not lease.must_kill()
    clock.now = 58.0
    assert lease.must_kill()

    lease.renew(60, asked_at=57.0)

    assert lease.left_s() == 59.0
    assert not lease.must_stop()


def test_a_lower_reason_does_not_take_the_place_of_a_higher_one():
    stop = StopOrder()

    assert stop.give(StopReason.PREEMPT)
    assert stop.give(StopReason.LEASE_LOST)
    assert not stop.give(StopReason.CANCEL)
    assert stop.reason is StopReason.LEASE_LOST
    assert stop.lost.is_set()
