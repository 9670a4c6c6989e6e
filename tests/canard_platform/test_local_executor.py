"""The local executor with real processes: launched once, seen to end, and nothing left of them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from stage import STANDIN

from canard_platform.executors import gpus
from canard_platform.executors.executor import Job, Observation, ProcessState
from canard_platform.executors.local import LocalExecutor
from canard_platform.executors.sessions import MARK, Leader

RUNNING = Observation(state=ProcessState.RUNNING)


@pytest.fixture
def open_executor(tmp_path: Path) -> Iterator[Callable[..., LocalExecutor]]:
    opened: list[LocalExecutor] = []

    def open_one(**options: Any) -> LocalExecutor:
        opened.append(LocalExecutor(tmp_path / "attempts", command=STANDIN, **{"slots": 2, **options}))
        return opened[-1]

    yield open_one
    for executor in opened:
        for handle in executor.list():
            executor.cancel(handle, grace_s=0)


@pytest.fixture
def executor(open_executor) -> LocalExecutor:
    return open_executor()


def job(name: str, attempt_id: str = "att_1", gpu_count: int = 1) -> Job:
    return Job(attempt_id=attempt_id, gpu_count=gpu_count, node="here", launch={"task_name": name})


def eventually(condition: Callable[[], Any], within_s: float = 30) -> Any:
    deadline = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
    return found


def end_of(executor: LocalExecutor, handle: str) -> Observation:
    def seen() -> Observation | None:
        observation = executor.poll([handle])[handle]
        return None if observation.state is ProcessState.RUNNING else observation

    found: Observation = eventually(seen)
    return found


def pids(tmp_path: Path, attempt_id: str = "att_1") -> list[int]:
    """Runner, its child, and a child in a session of its own."""
    file = tmp_path / "attempts" / attempt_id / "pids.json"
    eventually(file.exists)
    found: list[int] = json.loads(file.read_text())
    return found


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize("code", [0, 3])
def test_an_exit_code_is_seen_and_the_slot_is_free_again(executor: LocalExecutor, code: int):
    handle = executor.submit(job(f"Return-{code}"))

    ended = end_of(executor, handle)

    assert (ended.state, ended.exit_code) == (ProcessState.EXITED, code)
    assert ended.detail == f"this is Return-{code}"
    assert executor.list() == []
    assert executor.capacity()[0].free == 2


def test_submitting_twice_is_submitting_once(executor: LocalExecutor, tmp_path: Path):
    first = executor.submit(job("Sleep-v0"))
    second = executor.submit(job("Sleep-v0"))

    assert first == second
    assert executor.capacity()[0].free == 1
    assert pids(tmp_path)[0] == int(first.split(":")[0])


def test_the_runner_leads_a_session_of_its_own(executor: LocalExecutor, tmp_path: Path):
    executor.submit(job("Sleep-v0"))

    runner, child, _ = pids(tmp_path)

    assert os.getsid(child) == runner != os.getsid(0)


def test_what_the_runner_reads_is_for_its_owner_only(open_executor, tmp_path: Path):
    look = "import os, sys, time; print(oct(os.stat(sys.argv[2]).st_mode & 0o777), flush=True)"
    executor = LocalExecutor(tmp_path / "attempts", command=(sys.executable, "-c", look), slots=1)

    ended = end_of(executor, executor.submit(job("any")))

    assert ended.detail == "0o600"
    assert not (tmp_path / "attempts" / "att_1" / "launch.json").exists()


def test_when_the_runner_is_killed_everything_it_started_goes_too(executor: LocalExecutor, tmp_path: Path):
    handle = executor.submit(job("Sleep-v0"))
    runner, child, elsewhere = pids(tmp_path)

    os.kill(runner, signal.SIGKILL)
    ended = end_of(executor, handle)

    assert (ended.state, ended.exit_code) == (ProcessState.EXITED, -signal.SIGKILL)
    assert [is_gone(pid) for pid in (runner, child, elsewhere)] == [True] * 3


def test_cancelling_without_grace_kills_all_of_it_before_it_returns(executor: LocalExecutor, tmp_path: Path):
    handle = executor.submit(job("Stubborn-v0"))
    everything = pids(tmp_path)

    executor.cancel(handle, grace_s=0)

    assert [is_gone(pid) for pid in everything] == [True] * 3
    assert executor.capacity()[0].free == 2


def test_a_runner_that_ignores_its_notice_is_killed_after_the_grace(executor: LocalExecutor, tmp_path: Path):
    handle = executor.submit(job("Stubborn-v0"))
    everything = pids(tmp_path)

    executor.cancel(handle, grace_s=0.5)
    assert executor.poll([handle])[handle] == RUNNING
    ended = end_of(executor, handle)

    assert ended.exit_code == -signal.SIGKILL
    assert [is_gone(pid) for pid in everything] == [True] * 3


def test_the_notice_is_a_sigterm_to_the_runner(executor: LocalExecutor, tmp_path: Path):
    handle = executor.submit(job("Sleep-v0"))
    pids(tmp_path)

    executor.cancel(handle, grace_s=60)

    assert end_of(executor, handle).exit_code == -signal.SIGTERM


def test_a_new_executor_takes_over_what_an_old_one_launched(open_executor, tmp_path: Path):
    handle = open_executor().submit(job("Sleep-v0"))
    everything = pids(tmp_path)

    heir = open_executor()

    assert heir.list() == [handle]
    assert heir.poll([handle])[handle] == RUNNING
    assert heir.capacity()[0].free == 1
    heir.cancel(handle, grace_s=0)
    assert [is_gone(pid) for pid in everything] == [True] * 3
    assert heir.list() == []


def test_what_ended_while_nobody_watched_is_told_by_its_last_act(open_executor, tmp_path: Path):
    first = open_executor()
    told, silent = first.submit(job("Sleep-v0", "att_1")), first.submit(job("Sleep-v0", "att_2"))
    for attempt_id in ("att_1", "att_2"):
        os.kill(pids(tmp_path, attempt_id)[0], signal.SIGKILL)
    (tmp_path / "attempts" / "att_1" / "exit.json").write_text('{"exit_code": 75}')

    heir = open_executor()
    seen = {handle: end_of(heir, handle) for handle in (told, silent)}

    assert (seen[told].state, seen[told].exit_code) == (ProcessState.EXITED, 75)
    assert seen[silent].state is ProcessState.LOST


def test_an_unknown_handle_is_lost_and_cancelling_it_is_nothing(executor: LocalExecutor):
    handle = "1:1.0:att_nobody"

    executor.cancel(handle, grace_s=0)

    assert executor.poll([handle])[handle].state is ProcessState.LOST


def test_a_pid_that_is_another_processs_by_now_is_left_alone(tmp_path: Path):
    """After a reboot the number of a runner may be a shell's."""
    innocent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    try:
        long_ago = Leader(attempt_id="att_1", pid=innocent.pid, created=time.time() - 86_400)

        assert not long_ago.lives()
        assert long_ago.kill_all()
        assert innocent.poll() is None
    finally:
        innocent.kill()
        innocent.wait()


def test_a_process_with_the_mark_is_found_wherever_it_went():
    env = {**os.environ, MARK: "att_marked"}
    strayed = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True, env=env
    )
    try:
        dead_leader = Leader(attempt_id="att_marked", pid=2**22 - 1, created=time.time())

        eventually(lambda: [process.pid for process in dead_leader.processes()] == [strayed.pid])
        assert dead_leader.kill_all()
        assert strayed.wait(10) == -signal.SIGKILL
    finally:
        strayed.kill()
        strayed.wait()


def test_killing_what_is_marked_spares_the_caller():
    """As the attempt runner does, which carries the mark itself."""
    code = (
        "import subprocess, sys; from canard_platform.executors.sessions import kill_marked;"
        "sleeper = [sys.executable, '-c', 'import time; time.sleep(60)'];"
        "child = subprocess.Popen(sleeper, start_new_session=True);"
        "print(kill_marked('att_self'), child.wait(10))"
    )

    answer = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, MARK: "att_self"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert answer.stdout.split() == ["True", "-9"]


def test_gpus_are_handed_out_whole_and_no_two_attempts_share_one(open_executor, tmp_path: Path):
    executor = open_executor(gpus=("GPU-a", "GPU-b", "GPU-c"), slots=None)
    executor.submit(job("Sleep-v0", "att_1", gpu_count=2))
    executor.submit(job("Sleep-v0", "att_2", gpu_count=1))

    seen = []
    for attempt_id in ("att_1", "att_2"):
        environment = psutil.Process(pids(tmp_path, attempt_id)[0]).environ()
        seen.append(environment["CUDA_VISIBLE_DEVICES"])

    assert seen == ["GPU-a,GPU-b", "GPU-c"]
    assert executor.capacity()[0].largest_gpu_count == 0


def test_without_gpus_a_task_takes_one_slot_and_a_share_of_the_cpus(open_executor, tmp_path: Path):
    executor = open_executor(slots=2, cpus=9)
    executor.submit(job("Sleep-v0", gpu_count=8))

    environment = psutil.Process(pids(tmp_path)[0]).environ()

    assert environment["OMP_NUM_THREADS"] == "4"
    assert executor.capacity()[0].free == 1


@pytest.mark.parametrize(
    ("listed", "limit", "expected"),
    [
        ("GPU-a\nGPU-b\n", None, ("GPU-a", "GPU-b")),
        ("GPU-a\nGPU-b\n", "1", ("1",)),
        ("GPU-a\n", "", ()),
        ("GPU-a\n", "-1", ()),
        ("", "0", ()),
        (None, None, ()),
    ],
)
def test_gpus_are_what_nvidia_smi_lists_within_the_limit_set_for_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: str | None, limit: str | None, expected
):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if limit is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", limit)
    if listed is not None:
        tool = tmp_path / "nvidia-smi"
        tool.write_text(f"#!/bin/sh\nprintf '%s' '{listed}'\n")
        tool.chmod(0o755)

    assert gpus.visible_gpus() == expected


def test_an_nvidia_smi_without_a_driver_means_no_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed'\nexit 9\n")
    tool.chmod(0o755)

    assert gpus.visible_gpus() == ()
