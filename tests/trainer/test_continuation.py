"""A training that was stopped and resumed is the training that was not."""

import json
import random
import shutil
import signal
import time
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

LONG = {"task_name": "Canard-Cartpole-v0", "num_envs": 32, "max_iterations": 40, "seed": 5}


def same(a, b) -> bool:
    if torch.is_tensor(a):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def newest(output: Path) -> Path:
    return max((output / "checkpoints").glob("model_*.pt"), key=iteration_of)


def iteration_of(checkpoint: Path) -> int:
    return int(checkpoint.stem.split("_")[1])


def iterations_told(output: Path) -> list[dict]:
    lines = (output / "events.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines if '"event": "iteration"' in line]


def stop_after(trainer, config, iterations: int, with_signal: int, *arguments: str):
    process, output = trainer.start(config, *arguments)
    events = output / "events.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if events.exists() and events.read_text().count('"event": "iteration"') >= iterations:
            break
        time.sleep(0.01)
    process.send_signal(with_signal)
    process.communicate(timeout=60)
    return process.returncode, output


@pytest.mark.parametrize(
    "config", [LONG, {**LONG, "task_name": "InvertedPendulum-v5", "num_envs": 4, "max_iterations": 8}]
)
@pytest.mark.parametrize("with_signal", [signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_twin_ends_bit_for_bit_equal(trainer, config, with_signal):
    whole = trainer.run(config)
    assert whole.code == 0, whole.stderr

    chance = random.Random(with_signal)
    code, output = stop_after(trainer, config, chance.randint(2, config["max_iterations"] // 2), with_signal)
    assert code == (75 if with_signal == signal.SIGTERM else -signal.SIGKILL)
    resumed = trainer.run(config, "--resume", str(newest(output)))

    assert resumed.code == 0, resumed.stderr
    [started] = resumed.events("started")
    assert started["iteration"] > 0
    assert resumed.events("iteration")[0]["iteration"] == started["iteration"] + 1
    final = [torch.load(newest(run.output), weights_only=True) for run in (whole, resumed)]
    for contents in final:
        contents["canard"].pop("learning_rate_asked")
    assert same(*final)
    history = {event["iteration"]: event["mean_reward"] for event in whole.events("iteration")}
    for event in resumed.events("iteration"):
        assert event["mean_reward"] == history[event["iteration"]]


def curves(outputs: list[Path], folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard shows of the event files of all attempts, laid into one folder."""
    folder.mkdir()
    for output in outputs:
        for file in (output / "tensorboard").iterdir():
            shutil.copy(file, folder)
    shown = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    shown.Reload()
    tags = [tag for tag in shown.Tags()["scalars"] if not tag.startswith("Perf/")]
    return {tag: [(point.step, point.value) for point in shown.Scalars(tag)] for tag in tags}


@pytest.mark.timeout(600)
def test_a_twin_interrupted_twenty_times_ends_bit_for_bit_equal_with_the_same_curves(trainer, tmp_path):
    config = {**LONG, "num_envs": 16, "max_iterations": 400}
    chance = random.Random(20)
    whole = trainer.run(config)
    assert whole.code == 0, whole.stderr
    history = {event["iteration"]: event["mean_reward"] for event in whole.events("iteration")}

    outputs: list[Path] = []
    arguments: list[str] = []
    for interruption in range(20):
        with_signal = signal.SIGKILL if interruption % 2 else signal.SIGTERM
        after = chance.randint(30, 55) if with_signal == signal.SIGKILL else chance.randint(0, 2)
        code, output = stop_after(trainer, config, after, with_signal, *arguments)
        assert code == (75 if with_signal == signal.SIGTERM else -signal.SIGKILL), output
        outputs.append(output)
        checkpoints = [file for each in outputs for file in (each / "checkpoints").glob("model_*.pt")]
        if checkpoints:
            arguments = ["--resume", str(max(checkpoints, key=iteration_of))]
    last = trainer.run(config, *arguments)
    outputs.append(last.output)

    assert last.code == 0, last.stderr
    final = [torch.load(newest(run.output), weights_only=True) for run in (whole, last)]
    for contents in final:
        contents["canard"].pop("learning_rate_asked")
    assert same(*final)
    told = [event for output in outputs for event in iterations_told(output)]
    assert len(told) > 400, "no iteration was done twice, so nothing was lost and found again"
    assert all(history[event["iteration"]] == event["mean_reward"] for event in told)
    whole_curves = curves([whole.output], tmp_path / "whole")
    assert [step for step, _ in whole_curves["Train/mean_reward"]] == list(range(1, 401))
    assert curves(outputs, tmp_path / "stitched") == whole_curves


def test_a_finished_run_resumed_is_done_at_once(trainer):
    config = {**LONG, "max_iterations": 3}
    whole = trainer.run(config)

    again = trainer.run(config, "--resume", str(newest(whole.output)))

    assert again.code == 0, again.stderr
    assert again.events("iteration") == []
    assert again.summary["iteration"] == 3
    for named in ("best_checkpoint", "final_checkpoint"):
        assert again.summary[named] == "checkpoints/model_3.pt"
    assert [event["path"] for event in again.events("checkpoint")] == ["checkpoints/model_3.pt"]
    final = [torch.load(newest(run.output), weights_only=True) for run in (whole, again)]
    assert same(*final)
    assert again.summary["mean_reward"] == whole.summary["mean_reward"]


LOCKED = """
import threading
import gymnasium
from gymnasium.envs.mujoco.inverted_pendulum_v5 import InvertedPendulumEnv

class Locked(InvertedPendulumEnv):
    def __init__(self, **arguments):
        super().__init__(**arguments)
        self.lock = threading.Lock()  # nothing that could be written down

gymnasium.register("Locked-v0", entry_point="user_code:Locked", max_episode_steps=1000)
"""


def test_where_episodes_cannot_be_restored_the_reward_stays_above_nine_tenths(trainer, tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code/user_code.py").write_text(LOCKED)
    how = {"path": tmp_path / "code"}
    config = {"task_name": "Locked-v0", "num_envs": 16, "seed": 3}
    before = trainer.run({**config, "max_iterations": 25}, "--import", "user_code", **how)
    assert before.code == 0, before.stderr
    reached = before.summary["mean_reward"]
    assert reached > 10 * before.summary["first_mean_reward"]

    resume = ("--import", "user_code", "--resume", str(newest(before.output)))
    after = trainer.run({**config, "max_iterations": 31}, *resume, **how)

    assert after.code == 0, after.stderr
    assert all(event["mean_reward"] > 0.9 * reached for event in after.events("iteration"))


def test_another_number_of_environments_goes_on_too(trainer):
    whole = trainer.run({**LONG, "max_iterations": 3})

    other = trainer.run({**LONG, "max_iterations": 5, "num_envs": 7}, "--resume", str(newest(whole.output)))

    assert other.code == 0, other.stderr
    assert [event["iteration"] for event in other.events("iteration")] == [4, 5]
    assert other.events("iteration")[0]["env_steps"] == 3 * 24 * 32 + 24 * 7


def test_the_adaptive_learning_rate_goes_on_and_a_new_one_is_taken_and_told(trainer):
    config = {**LONG, "max_iterations": 6, "schedule": "adaptive", "learning_rate": 1e-3}
    whole = trainer.run(config)
    saved = torch.load(newest(whole.output), weights_only=True)
    rate = saved["optimizer_state_dict"]["param_groups"][0]["lr"]
    assert rate != 1e-3

    same_rate = trainer.run({**config, "max_iterations": 7}, "--resume", str(newest(whole.output)))
    fixed = {**config, "max_iterations": 7, "schedule": "fixed", "learning_rate": 5e-5}
    new_rate = trainer.run(fixed, "--resume", str(newest(whole.output)))

    steps = 5 * 4
    assert rate / 1.5**steps <= same_rate.events("iteration")[0]["learning_rate"] <= 1e-2
    assert same_rate.events("warning") == []
    assert new_rate.events("iteration")[0]["learning_rate"] == 5e-5
    assert "learning_rate" in new_rate.events("warning")[0]["message"]
