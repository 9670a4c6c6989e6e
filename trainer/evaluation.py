"""Episodes of a finished policy: deterministic actions, frozen normalisers, returns without a bias."""

import argparse
import json
import statistics
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from rsl_rl.algorithms import PPO

from canard.models import TrainingConfig
from trainer import checkpoints, randomness
from trainer.agent import agent_cfg_of
from trainer.errors import DONE, ConfigurationError, Preempted
from trainer.events import EventLog, finite_only
from trainer.files import sha256_of, write_whole
from trainer.fitting import fitted
from trainer.modules import import_modules
from trainer.ranks import Ranks
from trainer.report import SUCCESS_TAGS
from trainer.shapes import refuse_other_shapes
from trainer.simulators import make_simulator, simulator_of, start_app
from trainer.simulators.simulator import Simulator, TaskRequest
from trainer.stop import StopRequest

NAME = "evaluation.json"
MOST_ENVS = 64


@dataclass(frozen=True, kw_only=True)
class Episodes:
    """Finished episodes, in the order of their number and then of their environment."""

    returns: list[float]
    lengths: list[int]
    """Env steps."""
    success_rate: float | None
    """0-100, over all episodes that ended meanwhile; None where the task does not say."""


def run_evaluation(
    args: argparse.Namespace,
    config: TrainingConfig | None,
    events: EventLog,
    stop: StopRequest,
    *,
    at_end: ExitStack,
) -> int:
    """Run the episodes and write evaluation.json; returns the exit code.

    Args:
        config: what the policy was trained with; None to take it from the checkpoint.

    Raises:
        ConfigurationError: the checkpoint cannot be used, or there are no episodes to run.
    """
    if args.episodes < 1:
        raise ConfigurationError(f"--episodes: must be at least 1, not {args.episodes}")
    contents = checkpoints.load(args.checkpoint)
    config = _for_evaluation(config or _config_of(contents, args.checkpoint), args)
    device = Ranks().device(args.device)
    app = start_app(config.task_name, device=lambda: device, video=False)
    import_modules(args.modules)
    seed = config.seed or 0
    randomness.seed_all(seed)
    request = TaskRequest(
        task_name=config.task_name,
        num_envs=config.num_envs,
        seed=seed,
        device=device,
        reward_weights=config.reward_weights or {},
        app=app,
        warn=lambda message: events.emit("warning", message=message),
    )
    simulator = make_simulator(simulator_of(config.task_name), request)
    stop.install()  # again: a simulator may have put its own in place
    at_end.callback(simulator.close)
    policy = _policy(simulator, config, contents, device)
    episodes = run_episodes(simulator, policy, args.episodes, stop)
    _write(args, config, contents, seed, episodes)
    return DONE


def run_episodes(simulator: Simulator, policy: Any, number: int, stop: StopRequest) -> Episodes:
    """Each environment contributes its first episodes, as many as any other or one less.

    The first `number` to finish would be the short ones, which fall over early.

    Raises:
        Preempted: a stop was requested.
    """
    env = simulator.env
    shares = [number // env.num_envs + (e < number % env.num_envs) for e in range(env.num_envs)]
    tally = _Tally(shares)
    returns = torch.zeros(env.num_envs, device=env.device)
    lengths = torch.zeros(env.num_envs, device=env.device)
    observations = env.get_observations()
    with torch.inference_mode():
        while not tally.is_full:
            if stop.requested:
                raise Preempted
            observations, rewards, dones, extras = env.step(policy(observations).to(env.device))
            policy.reset(dones)
            returns = returns + rewards
            lengths = lengths + 1
            done = dones > 0
            ended = done.nonzero().flatten().tolist()
            if ended:
                tally.add(ended, returns[done].tolist(), lengths[done].tolist(), extras.get("log") or {})
            returns = returns.masked_fill(done, 0)
            lengths = lengths.masked_fill(done, 0)
    return tally.episodes()


@dataclass
class _Tally:
    shares: list[int]
    found: dict[tuple[int, int], tuple[float, int]] = field(default_factory=dict)
    """By number of the episode and of its environment: return and length."""
    counts: dict[int, int] = field(default_factory=dict)
    successes: list[tuple[float, int]] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        return len(self.found) >= sum(self.shares)

    def add(self, ended: list[int], returns: list[float], lengths: list[float], log: dict[str, Any]) -> None:
        for env, total, length in zip(ended, returns, lengths, strict=True):
            number = self.counts.get(env, 0)
            self.counts[env] = number + 1
            if number < self.shares[env]:
                self.found[number, env] = total, int(length)
        self.successes += [(float(log[tag]), len(ended)) for tag in SUCCESS_TAGS if tag in log]

    def episodes(self) -> Episodes:
        ordered = [self.found[key] for key in sorted(self.found)]
        known = sum(weight for _, weight in self.successes)
        return Episodes(
            returns=[total for total, _ in ordered],
            lengths=[length for _, length in ordered],
            success_rate=100 * sum(s * w for s, w in self.successes) / known if known else None,
        )


def _config_of(contents: dict[str, Any], path: Path) -> TrainingConfig:
    said = (contents.get(checkpoints.OUR_KEY) or {}).get("config")
    if said is None:
        raise ConfigurationError(
            f"checkpoint {path}: does not say what it was trained with; name that by --config training.json"
        )
    try:
        return TrainingConfig.model_validate(said)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigurationError(f"checkpoint {path}: its config: {where}: {first['msg']}") from error


def _for_evaluation(config: TrainingConfig, args: argparse.Namespace) -> TrainingConfig:
    """One process; never more environments than episodes."""
    asked = args.num_envs if args.num_envs is not None else min(config.num_envs, MOST_ENVS)
    changed: dict[str, Any] = {"num_envs": min(asked, args.episodes), "gpu_count": 1, "video_enabled": False}
    if args.seed is not None:
        changed["seed"] = args.seed
    try:
        return TrainingConfig.model_validate({**config.model_dump(exclude_unset=True), **changed})
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]).replace("_", "-")
        raise ConfigurationError(f"--{name}: {first['msg']}") from error


def _policy(simulator: Simulator, config: TrainingConfig, contents: dict[str, Any], device: str) -> Any:
    # One mini-batch: an evaluation may have fewer environments than an update needs, and makes none.
    cfg = agent_cfg_of(config.model_copy(update={"num_mini_batches": 1}), simulator.agent_cfg)
    algorithm = PPO.construct_algorithm(simulator.env.get_observations(), simulator.env, cfg, device)
    contents, _ = fitted(contents, algorithm)
    policy = algorithm.get_policy()
    refuse_other_shapes(contents, policy, key="actor_state_dict", name="actor")
    algorithm.load(contents, {"actor": True}, True)
    algorithm.eval_mode()
    return policy


def _write(
    args: argparse.Namespace,
    config: TrainingConfig,
    contents: dict[str, Any],
    seed: int,
    episodes: Episodes,
) -> None:
    returns = episodes.returns
    mean, spread = statistics.fmean(returns), statistics.pstdev(returns)
    said, nonfinite = finite_only(
        {
            "status": "completed",
            "mode": "evaluation",
            "task_name": config.task_name,
            "checkpoint": str(args.checkpoint),
            "checkpoint_sha256": sha256_of(args.checkpoint),
            "iteration": checkpoints.iteration_of(contents),
            "seed": seed,
            "num_envs": config.num_envs,
            "episodes": len(returns),
            "mean_return": mean,
            "std_return": spread,
            "min_return": min(returns),
            "max_return": max(returns),
            "mean_length": statistics.fmean(episodes.lengths),
            "success_rate": episodes.success_rate,
        }
    )
    said |= {
        "returns": returns,
        "lengths": episodes.lengths,
        **({"nonfinite": nonfinite} if nonfinite else {}),
    }
    text = json.dumps(said, indent=2) + "\n"
    write_whole(args.output / NAME, lambda path: path.write_text(text, encoding="utf-8"))
    told = [
        f"return {mean:.2f} +- {spread:.2f} ({min(returns):.2f} to {max(returns):.2f})",
        f"length {statistics.fmean(episodes.lengths):.0f}",
        *([f"success {episodes.success_rate:.0f} %"] if episodes.success_rate is not None else []),
    ]
    print(f"{len(returns)} episodes of {config.task_name} by {args.checkpoint.name}: {', '.join(told)}")  # noqa: T201
