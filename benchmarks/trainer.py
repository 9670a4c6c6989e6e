"""Env steps per second of our training loop beside rsl-rl's own OnPolicyRunner.

Both train the same task from the same seed in one process, an iteration each in turns, so that a machine
that slows down slows both. Both write TensorBoard curves and checkpoints at the same iterations; ours also
writes events, checks that every number is finite, and keeps in its checkpoints what a continuation needs. It
is checked that both did the same work: they end with the same network.

    python -m benchmarks.trainer
    python -m benchmarks.trainer --task HalfCheetah-v5 --num-envs 16 --iterations 10
"""

import argparse
import contextlib
import io
import statistics
import tempfile
import threading
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
DEFAULT_ENVS = {"Canard-Cartpole-v0": 1024}
Loop = Callable[[TrainingConfig, str, Path, "Turn"], torch.nn.Module]


class Turns:
    """Two threads of which one runs at a time."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.now = 0
        self.running = {0, 1}


class Turn:
    """One of the two: its seconds, and its random generators while it waits."""

    def __init__(self, turns: Turns, number: int, device: str) -> None:
        self._turns = turns
        self._number = number
        self._device = device
        self._generators: dict[str, Any] | None = None
        self._steps = 0
        self.seconds = 0.0

    def take(self) -> None:
        with self._turns.changed:
            self._turns.changed.wait_for(lambda: self._turns.now == self._number)
        if self._generators is not None:
            randomness.load_state_dict(self._generators)
        self._since = time.perf_counter()

    def give(self, *, for_good: bool = False) -> None:
        if self._device != "cpu":
            torch.cuda.synchronize()
        self.seconds += time.perf_counter() - self._since
        self._generators = randomness.state_dict()
        with self._turns.changed:
            if for_good:
                self._turns.running.discard(self._number)
            self._turns.now = next(iter(self._turns.running - {self._number}), self._number)
            self._turns.changed.notify_all()

    def between_iterations(self, simulator: Simulator, num_steps: int) -> None:
        """Give the other its turn before each rollout but the first."""
        step = simulator.env.step

        def stepped(actions: torch.Tensor) -> Any:
            if self._steps and self._steps % num_steps == 0:
                self.give()
                self.take()
            self._steps += 1
            return step(actions)

        simulator.env.step = stepped


def ours(config: TrainingConfig, device: str, folder: Path, turn: Turn) -> torch.nn.Module:
    """Trains in its turns; returns the actor."""
    simulator, cfg = _task(config, device, turn)
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
    _start(turn)
    training.learn()
    return training.alg.actor


def theirs(config: TrainingConfig, device: str, folder: Path, turn: Turn) -> torch.nn.Module:
    """The same by rsl-rl's runner."""
    simulator, cfg = _task(config, device, turn)
    interval = max(1, config.max_iterations // 10)
    runner = OnPolicyRunner(
        simulator.env, {**cfg, "save_interval": interval, "logger": "tensorboard"}, str(folder), device
    )
    runner.logger.git_status_repos.clear()
    _start(turn)
    runner.learn(config.max_iterations)
    return runner.alg.actor


def _task(config: TrainingConfig, device: str, turn: Turn) -> tuple[Simulator, dict[str, Any]]:
    turn.take()
    randomness.seed_all(SEED)
    request = TaskRequest(task_name=config.task_name, num_envs=config.num_envs, seed=SEED, device=device)
    simulator = make_simulator(simulator_of(config.task_name), request)
    cfg = agent_cfg_of(config, simulator.agent_cfg)
    turn.between_iterations(simulator, cfg["num_steps_per_env"])
    return simulator, cfg


def _start(turn: Turn) -> None:
    """Only the loop counts, not what was built for it."""
    turn.give()
    turn.seconds = 0.0
    turn.take()


def compared(config: TrainingConfig, device: str, *, ours_first: bool) -> float:
    """Our env steps per second over those of rsl-rl's runner."""
    turns = Turns()
    loops: list[Loop] = [ours, theirs] if ours_first else [theirs, ours]
    seconds: dict[str, float] = {}
    actors: dict[str, torch.nn.Module] = {}

    def run(number: int, folder: Path) -> None:
        turn, loop = Turn(turns, number, device), loops[number]
        try:
            actors[loop.__name__] = loop(config, device, folder, turn)
        finally:  # else the other waits for ever
            turn.give(for_good=True)
        seconds[loop.__name__] = turn.seconds

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        threads = [threading.Thread(target=run, args=(n, Path(folder, str(n)))) for n in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    parameters = zip(actors["ours"].parameters(), actors["theirs"].parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in parameters), "the two did not do the same work"
    return seconds["theirs"] / seconds["ours"]


def main() -> None:
    parser = argparse.ArgumentParser(description="Our training loop beside rsl-rl's runner.")
    parser.add_argument("--task", action="append", help="task name; default: cartpole and a gymnasium task")
    parser.add_argument("--num-envs", type=int)
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    for task in args.task or ["Canard-Cartpole-v0", "InvertedPendulum-v5"]:
        num_envs = args.num_envs or DEFAULT_ENVS.get(task, 16)
        config = TrainingConfig(task_name=task, num_envs=num_envs, max_iterations=args.iterations, seed=SEED)
        ratios = []
        for repeat in range(args.repeats):
            ratios.append(compared(config, args.device, ours_first=repeat % 2 == 0))
        told = ", ".join(f"{ratio:.3f}" for ratio in ratios)
        print(f"{task}, {num_envs} envs, {args.iterations} iterations, {args.device}")
        print(f"  env steps/s of ours over rsl-rl's: median {statistics.median(ratios):.3f} of {told}")


if __name__ == "__main__":
    main()
