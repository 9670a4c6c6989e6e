"""Env steps per second of our training loop beside rsl-rl's own OnPolicyRunner.

Both train the same task from the same seed, in turns in one process, and both write TensorBoard curves and
checkpoints at the same iterations; ours also writes events, checks that every number is finite, and keeps in
its checkpoints what a continuation needs. That both did the same work is checked: they end with the same
network.

    python -m benchmarks.trainer
    python -m benchmarks.trainer --task HalfCheetah-v5 --num-envs 16 --iterations 10
"""

import argparse
import contextlib
import io
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rsl_rl.runners import OnPolicyRunner

from canard.models import TrainingConfig
from trainer import randomness
from trainer.agent import agent_cfg_of
from trainer.events import EventLog
from trainer.ranks import Ranks
from trainer.simulators import make_simulator, simulator_of
from trainer.simulators.simulator import Simulator, TaskRequest
from trainer.stop import StopRequest
from trainer.training import Training

SEED = 1
Network = dict[str, torch.Tensor]


def ours(config: TrainingConfig, device: str, folder: Path) -> tuple[float, Network]:
    """Seconds of the loop, and the actor it ends with."""
    simulator, cfg = _task(config, device)
    training = Training(
        config,
        simulator,
        cfg,
        device=device,
        output=folder,
        events=EventLog(folder / "events.jsonl"),
        stop=StopRequest(),
        ranks=Ranks(),
    )
    seconds = _timed(training.learn, device)
    simulator.close()
    return seconds, training.alg.actor.state_dict()


def theirs(config: TrainingConfig, device: str, folder: Path) -> tuple[float, Network]:
    """The same of rsl-rl's runner."""
    simulator, cfg = _task(config, device)
    interval = max(1, config.max_iterations // 10)
    settings = {**cfg, "save_interval": interval, "logger": "tensorboard"}
    runner = OnPolicyRunner(simulator.env, settings, str(folder), device)
    runner.logger.git_status_repos.clear()
    seconds = _timed(lambda: runner.learn(config.max_iterations), device)
    simulator.close()
    return seconds, runner.alg.actor.state_dict()


def _task(config: TrainingConfig, device: str) -> tuple[Simulator, dict[str, Any]]:
    randomness.seed_all(SEED)
    request = TaskRequest(task_name=config.task_name, num_envs=config.num_envs, seed=SEED, device=device)
    simulator = make_simulator(simulator_of(config.task_name), request)
    return simulator, agent_cfg_of(config, simulator.agent_cfg)


def _timed(learn: Callable[[], None], device: str) -> float:
    start = time.perf_counter()
    learn()
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def compared(config: TrainingConfig, device: str, repeats: int) -> list[float]:
    """Our env steps per second over theirs, of each pair of runs; who begins alternates."""
    ratios = []
    for repeat in range(repeats + 1):
        pair: list[Callable[..., tuple[float, Network]]] = [ours, theirs]
        took: dict[str, tuple[float, Network]] = {}
        for loop in pair if repeat % 2 else reversed(pair):
            with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
                took[loop.__name__] = loop(config, device, Path(folder))
        (our_s, our_actor), (their_s, their_actor) = took["ours"], took["theirs"]
        if not all(torch.equal(our_actor[name], their_actor[name]) for name in their_actor):
            print("the two ended with different networks: not the same work")
        if repeat:  # the first pair warms the machine up
            ratios.append(their_s / our_s)
            print(f"  ours {our_s:6.2f} s, rsl-rl {their_s:6.2f} s, ratio of env steps/s {ratios[-1]:.3f}")
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description="Our training loop beside rsl-rl's runner.")
    parser.add_argument("--task", action="append", help="task name; default: cartpole and a gymnasium task")
    parser.add_argument("--num-envs", type=int)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    default_envs = {"Canard-Cartpole-v0": 1024}
    for task in args.task or ["Canard-Cartpole-v0", "InvertedPendulum-v5"]:
        num_envs = args.num_envs or default_envs.get(task, 16)
        config = TrainingConfig(task_name=task, num_envs=num_envs, max_iterations=args.iterations, seed=SEED)
        print(f"{task}, {num_envs} envs, {args.iterations} iterations, {args.device}")
        ratios = compared(config, args.device, args.repeats)
        low, high = min(ratios), max(ratios)
        print(f"  median {statistics.median(ratios):.3f} ({low:.3f} to {high:.3f})")


if __name__ == "__main__":
    main()
