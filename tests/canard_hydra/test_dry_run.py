"""mode=dry_run: the real trainer trains here, a few iterations."""

import re
import signal
import subprocess
import sys
import time

import psutil
import pytest

SMALL = ("num_envs=8", "network=small", "dry_run_iterations=2")
LIMIT_S = 120


@pytest.fixture(autouse=True)
def one_thread(environment):
    environment["OMP_NUM_THREADS"] = "1"


def test_it_measures_and_estimates_from_the_measurement(canard_hydra):
    done = canard_hydra("-m", "mode=dry_run", *SMALL, "max_iterations=1000,2000", "gpu_count=2")

    assert done.returncode == 0, done.stderr
    measured = re.search(r"Measured: ([\d.e-]+) s per iteration, ([\d,]+) env steps per second", done.stdout)
    assert measured is not None, done.stdout
    iteration_s = float(measured[1])
    assert iteration_s > 0
    memory = re.search(r"([\d.]+) GB of memory at the peak", done.stdout)
    assert memory is not None, done.stdout
    assert 0.1 < float(memory[1]) < 10
    assert "2 members = 2 (max_iterations)" in done.stdout
    # Two GPUs an hour cost a dollar; 3,000 iterations in all.
    cents = iteration_s * 3000 / 3600 * 100
    told = re.search(r"Total: (?:\$([\d.]+)|less than)", done.stdout)
    assert told is not None
    assert float(told[1] or 0) * 100 == pytest.approx(cents, abs=1.5, rel=0.01)
    assert "Nothing was submitted" in done.stdout


def test_the_trainer_may_be_another_interpreters(canard_hydra, environment, tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\ntouch "{tmp_path}/was-run"\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    environment["CANARD_TRAINER_PYTHON"] = str(python)

    done = canard_hydra("mode=dry_run", *SMALL)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "was-run").exists()


def test_an_interpreter_that_is_not_there_is_said(canard_hydra, environment):
    environment["CANARD_TRAINER_PYTHON"] = "/nowhere/python"

    done = canard_hydra("mode=dry_run", *SMALL)

    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert "CANARD_TRAINER_PYTHON=/nowhere/python" in line


def test_it_starts_no_platform(canard_hydra, environment, tmp_path):
    canard_hydra("mode=dry_run", *SMALL)

    assert not (tmp_path / "canard-home").exists()


def test_what_the_trainer_refuses_is_one_line(canard_hydra):
    done = canard_hydra("mode=dry_run", "task.task_name=Nope-v0")

    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert "Nope-v0" in line


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_or_a_polite_end_ends_the_trainer_too(environment, directory, number):
    process = subprocess.Popen(
        [sys.executable, "-m", "canard_hydra", "mode=dry_run", "dry_run_iterations=100000"],
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + LIMIT_S
    while not (trainers := psutil.Process(process.pid).children()):
        assert time.monotonic() < deadline
        time.sleep(0.01)

    process.send_signal(number)

    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 128 + number
    assert "nothing was submitted" in err
    assert not any(trainer.is_running() for trainer in trainers)
