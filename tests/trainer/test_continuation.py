"""A training that was stopped and resumed is the training that was not."""

import random
import signal
import time
from pathlib import Path

import pytest
import torch

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
    return max((output / "checkpoints").glob("model_*.pt"), key=lambda path: int(path.stem.split("_")[1]))


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
