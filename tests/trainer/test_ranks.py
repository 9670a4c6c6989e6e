"""One task on several processes, as on several GPUs; here they are on the CPU and speak over gloo."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch

PAIR = {"task_name": "Canard-Cartpole-v0", "num_envs": 16, "max_iterations": 6, "seed": 11, "gpu_count": 2}

PROBE = """
import os
import random
import torch
from trainer.training import Training

rank = os.environ["RANK"]
learn = Training.learn

def learn_and_tell(self):
    first = self.env.get_observations()["policy"][0].clone() if hasattr(self.env, "generator") else None
    learn(self)
    models = {"actor": self.alg.actor.state_dict(), "critic": self.alg.critic.state_dict()}
    torch.save({**models, "first": first, "drawn": random.random(), "rate": self.alg.learning_rate},
               os.environ["PROBE_FOLDER"] + f"/rank{rank}.pt")

Training.learn = learn_and_tell
"""


@pytest.fixture
def probed(tmp_path, monkeypatch):
    """A module that tells, at the end, what each rank has; and where."""
    folder = tmp_path / "probe"
    folder.mkdir()
    (folder / "probe.py").write_text(PROBE)
    monkeypatch.setenv("PROBE_FOLDER", str(folder))
    return folder


def told(folder: Path) -> list[dict]:
    return [torch.load(folder / f"rank{rank}.pt", weights_only=True) for rank in range(2)]


def module(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "user_code.py").write_text(text)
    return folder


def same(a, b) -> bool:
    if torch.is_tensor(a):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def final(output: Path) -> dict:
    contents = torch.load(output / "checkpoints/model_6.pt", weights_only=True)
    contents["canard"].pop("learning_rate_asked")
    return contents


def until(output: Path, iterations: int, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 60
    events = output / "events.jsonl"
    while time.monotonic() < deadline and process.poll() is None:
        if events.exists() and events.read_text().count('"event": "iteration"') >= iterations:
            return
        time.sleep(0.01)


def ranks_of(process: "subprocess.Popen[str]") -> dict[str, psutil.Process]:
    return {child.environ()["RANK"]: child for child in psutil.Process(process.pid).children()}


@pytest.mark.parametrize("task", [{}, {"task_name": "InvertedPendulum-v5", "num_envs": 2}])
def test_two_ranks_end_with_the_same_network_from_different_episodes_and_one_writes(trainer, probed, task):
    ended = trainer.run({**PAIR, **task}, "--import", "probe", path=probed)

    assert ended.code == 0, ended.stderr
    first, second = told(probed)
    for network in ("actor", "critic"):
        assert same(first[network], second[network])
    assert first["rate"] == second["rate"]
    assert first["drawn"] != second["drawn"]
    assert first["first"] is None or not torch.equal(first["first"], second["first"])
    assert [event["iteration"] for event in ended.events("iteration")] == [1, 2, 3, 4, 5, 6]
    assert len(ended.events("started")) == len(ended.events("finished")) == 1
    assert len(list((ended.output / "tensorboard").iterdir())) == 1
    per_iteration = ended.events("iteration")[0]["env_steps"]
    assert per_iteration % (2 * ended.events("started")[0]["num_envs"]) == 0
    assert ended.summary["env_steps"] == 6 * per_iteration


def test_two_ranks_stopped_and_resumed_are_the_two_that_were_not(trainer):
    config = {**PAIR, "max_iterations": 6}
    whole = trainer.run(config)
    assert whole.code == 0, whole.stderr

    process, output = trainer.start(config)
    until(output, 2, process)
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 75
    checkpoint = max((output / "checkpoints").glob("*.pt"), key=lambda path: int(path.stem[6:]))
    assert int(checkpoint.stem[6:]) < 6
    resumed = trainer.run(config, "--resume", str(checkpoint))

    assert resumed.code == 0, resumed.stderr
    assert same(final(whole.output), final(resumed.output))
    history = {event["iteration"]: event["mean_reward"] for event in whole.events("iteration")}
    assert all(history[e["iteration"]] == e["mean_reward"] for e in resumed.events("iteration"))


@pytest.mark.parametrize("gpus", [(1, 2), (2, 1)])
def test_a_checkpoint_of_another_number_of_gpus_goes_on(trainer, gpus):
    before = trainer.run({**PAIR, "gpu_count": gpus[0], "max_iterations": 2})
    checkpoint = before.output / "checkpoints/model_2.pt"

    after = trainer.run({**PAIR, "gpu_count": gpus[1], "max_iterations": 3}, "--resume", str(checkpoint))

    assert after.code == 0, after.stderr
    [event] = after.events("iteration")
    assert event["iteration"] == 3
    assert event["env_steps"] == 24 * 16 * (2 * gpus[0] + gpus[1])


@pytest.mark.parametrize("rank", ["0", "1"])
def test_a_killed_rank_stops_the_others_and_is_named(trainer, rank):
    process, output = trainer.start({**PAIR, "max_iterations": 100_000})
    until(output, 1, process)
    ranks = ranks_of(process)

    ranks[rank].send_signal(signal.SIGKILL)
    _, stderr = process.communicate(timeout=30)

    assert process.returncode == 1
    last = [json.loads(line) for line in (output / "events.jsonl").read_text().splitlines()][-1]
    assert (last["event"], last["message"]) == ("failed", f"rank {rank} was killed by SIGKILL")
    assert last["message"] in stderr
    assert not any(other.is_running() for other in ranks.values())


DIVERGING = """
import os
import torch
from trainer.simulators.cartpole import CartpoleEnv

step = CartpoleEnv.step

def broken(self, actions):
    observations, rewards, dones, extras = step(self, actions)
    self.steps = getattr(self, "steps", 0) + 1
    if os.environ["RANK"] == "1" and self.steps == 60:
        {fault}
    return observations, rewards, dones, extras

CartpoleEnv.step = broken
"""


def test_a_divergence_of_one_rank_is_told_and_ends_all(trainer, tmp_path):
    code = module(tmp_path / "code", DIVERGING.format(fault="rewards[3] = float('inf')"))

    ended = trainer.run(PAIR, "--import", "user_code", path=code)

    assert ended.code == 3
    [failed] = ended.events("failed")
    assert failed["message"] == "non-finite reward (rank 1) at iteration 3"
    assert [path.name for path in (ended.output / "checkpoints").iterdir()] != []


def test_an_error_in_one_rank_is_the_error_that_is_told(trainer, tmp_path):
    code = module(tmp_path / "code", DIVERGING.format(fault="raise OSError('the arm fell off')"))

    ended = trainer.run(PAIR, "--import", "user_code", path=code)

    assert ended.code == 1
    [failed] = ended.events("failed")
    assert (failed["error_type"], failed["message"]) == ("OSError", "the arm fell off")
    assert "user_code.py" in ended.stderr  # its traceback


def test_a_wrong_config_is_refused_by_its_own_exit_code(trainer):
    ended = trainer.run({**PAIR, "task_name": "Canard-Cartpole-v9"})

    assert ended.code == 2
    assert "did you mean" in ended.events("failed")[-1]["message"]


def test_torchrun_may_start_the_ranks_too(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({**PAIR, "max_iterations": 2}))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "trainer", "--config", "config.json", "--output", "out", "--device", "cpu"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    ended = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=150, check=False
    )

    assert ended.returncode == 0, ended.stderr
    assert json.loads((tmp_path / "out/summary.json").read_text())["iteration"] == 2


def test_another_number_of_ranks_than_gpu_count_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(PAIR))
    command = [sys.executable, "-m", "trainer", "--config", "config.json", "--output", "out"]
    environment = {**os.environ, "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "4"}

    ended = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )

    assert ended.returncode == 2
    assert "gpu_count: 2, and 4 ranks were started" in ended.stderr
