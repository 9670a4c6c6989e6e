"""Ctrl-C: nothing was submitted and that is said, or the run goes on and the way back is said."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest
from loopback import Answer, Request
from recording import SLUG, Service

LIMIT_S = 60
GOES_ON = (f"canard watch {SLUG}", f"canard cancel {SLUG}")


class Holding(Service):
    """Says when a path is asked for, and answers it only when it is let go on."""

    def __init__(self, held: str) -> None:
        self.held = held
        self.asked = threading.Event()
        self.go_on = threading.Event()
        super().__init__()

    def _respond(self, request: Request) -> Answer:
        if self.held in f"{request.method} {request.path}":
            self.asked.set()
            assert self.go_on.wait(LIMIT_S)
        return super()._respond(request)


@pytest.fixture
def start(environment, directory):
    """Starts the command; it is gone at the end of the test."""
    processes: list[subprocess.Popen[str]] = []

    def begin(*arguments: str, **extra: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "canard_hydra", "platform=self_hosted", *arguments],
            cwd=directory,
            env=environment | {"CANARD_API_KEY": "k" * 40} | extra,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def holding():
    services: list[Holding] = []

    def make(held: str) -> Holding:
        services.append(Holding(held))
        return services[-1]

    yield make
    for service in services:
        service.go_on.set()
        service.close()


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    out, err = process.communicate(timeout=LIMIT_S)
    assert "Traceback" not in err, err
    return process.returncode, out + err


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_while_members_are_composed_nothing_is_submitted(start, holding, directory):
    """creinders/hydra-slurm-rich-launcher#1."""
    service = holding("never")
    process = start("-m", "seed=range(2000)", CANARD_API_URL=service.url)
    # Hydra writes this just before it asks the launcher to compose the members.
    eventually(lambda: any(directory.glob("multirun/*/*/multirun.yaml")))

    process.send_signal(signal.SIGINT)

    status, said = ended(process)
    assert status == 130
    assert "nothing was submitted" in said
    assert service.requests == []


def test_during_the_submit_the_answer_is_waited_for(start, holding):
    """dstackai/dstack#2068."""
    service = holding("POST /v1/runs")
    process = start("-m", "seed=1,2", CANARD_API_URL=service.url)
    assert service.asked.wait(LIMIT_S)

    process.send_signal(signal.SIGINT)
    assert "waiting for the platform's answer" in process.stderr.readline() + process.stderr.readline()
    service.go_on.set()

    status, said = ended(process)
    assert status == 130
    assert all(way in said for way in GOES_ON)
    assert len(service.submits) == 1


def test_a_second_time_during_the_submit_leaves_at_once(start, holding):
    """joblib/joblib#181."""
    service = holding("POST /v1/runs")
    process = start("seed=1", CANARD_API_URL=service.url)
    assert service.asked.wait(LIMIT_S)

    process.send_signal(signal.SIGINT)
    assert "Ctrl-C again leaves" in process.stderr.readline() + process.stderr.readline()
    process.send_signal(signal.SIGINT)

    status, said = ended(process)
    assert status == 130
    assert "the run may exist; look with: canard runs" in said


def test_while_waiting_the_run_goes_on(start, holding):
    """creinders/hydra-slurm-rich-launcher#1, hydra-ecosystem/hydra#3078."""
    service = holding(f"GET /v1/runs/{SLUG}")
    process = start("-m", "wait=true", "seed=1,2", CANARD_API_URL=service.url)
    assert service.asked.wait(LIMIT_S)

    process.send_signal(signal.SIGINT)

    status, said = ended(process)
    assert status == 130
    assert all(way in said for way in GOES_ON)
    assert not [one for one in service.requests if one.path.endswith("/cancel")]


def test_a_single_run_that_is_waited_for_goes_on_too(start, holding):
    service = holding(f"GET /v1/runs/{SLUG}")
    process = start("wait=true", CANARD_API_URL=service.url)
    assert service.asked.wait(LIMIT_S)

    process.send_signal(signal.SIGINT)

    status, said = ended(process)
    assert status == 130
    assert all(way in said for way in GOES_ON)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (f"GET /v1/runs/{SLUG}", f"canard watch {SLUG}"),
        ("POST /v1/runs", "waiting for the platform's answer to the submit"),
    ],
)
def test_a_polite_end_is_as_ctrl_c(start, holding, held, said):
    """creinders/hydra-slurm-rich-launcher#1: a scheduler ends the command, not the run."""
    service = holding(held)
    process = start("-m", "wait=true", "seed=1,2", CANARD_API_URL=service.url)
    assert service.asked.wait(LIMIT_S)

    process.send_signal(signal.SIGTERM)
    first = process.stderr.readline() + process.stderr.readline()
    service.go_on.set()

    status, rest = ended(process)
    assert status == 128 + signal.SIGTERM
    assert said in first + rest
    assert all(way in first + rest for way in GOES_ON)


def test_a_command_in_the_background_of_a_shell_goes_on(environment, directory, service):
    """A shell makes what it starts with `&` ignore Ctrl-C, which is for the command in front."""
    process = subprocess.Popen(
        ["sh", "-c", f"trap '' INT; exec {sys.executable} -m canard_hydra platform=self_hosted wait=true"],
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    eventually(lambda: any(SLUG in one.path for one in service.requests))

    os.kill(process.pid, signal.SIGINT)
    seen = len(service.requests)
    eventually(lambda: len(service.requests) > seen)
    service.statuses = ["completed"]

    status, said = ended(process)
    assert status == 0, said
    assert "Best: task 0" in said
