"""One task from config to summary: the order in which things are checked, built, run and written."""

import argparse
import os
import secrets
import statistics
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from canard.models import PhysicsConfig, TrainingConfig
from trainer import video
from trainer.errors import DONE, ConfigurationError
from trainer.events import EventLog
from trainer.modules import import_modules
from trainer.ranks import Ranks
from trainer.simulators import make_simulator, simulator_of, start_app
from trainer.stop import StopRequest
from trainer.summary import write_summary

if TYPE_CHECKING:
    from trainer.training import Training


def run_training(
    config: TrainingConfig,
    args: argparse.Namespace,
    events: EventLog,
    stop: StopRequest,
    *,
    started: float,
    at_end: ExitStack,
) -> int:
    """Train; returns the exit code. What is closed at the end, when all is written, goes to `at_end`.

    Raises:
        ConfigurationError, DivergenceError, Preempted: as `trainer.errors` says.
    """
    if args.dry_run is not None:
        config = _shortened(config, args.dry_run)
    ranks = Ranks.of(os.environ)
    if ranks.size != config.gpu_count:
        raise ConfigurationError(f"gpu_count: {config.gpu_count}, and {ranks.size} ranks were started")
    if not ranks.is_first:
        config = config.model_copy(update={"video_enabled": False})
    config, hint = video.prepared(config, events)
    app = start_app(config.task_name, device=lambda: ranks.device(args.device), video=config.video_enabled)
    import_modules(args.modules)
    simulator_name = simulator_of(config.task_name)
    training = _built(config, simulator_name, args, events, stop, ranks=ranks, app=app)
    at_end.callback(training.simulator.close)
    startup_s = time.monotonic() - started
    if config.video_enabled:
        training.recorder = _recorder(training, events, hint)
    training.learn()
    if not ranks.is_first:
        return DONE
    if args.dry_run is None:
        _export_policy(training, events)
    _summarize(training, startup_s, time.monotonic() - started, dry_run=args.dry_run is not None)
    events.emit("finished", iteration=training.iteration)
    return DONE


def _recorder(training: "Training", events: EventLog, hint: str | None) -> "video.Recorder | None":
    recorder = video.Recorder(
        training.simulator,
        output=training.output,
        events=events,
        interval=training.config.video_interval,
        env_step=training.steps_of_each_env,
        hint=hint,
    )
    return recorder if recorder.preflight() else None


def run_physics(
    config: PhysicsConfig, args: argparse.Namespace, events: EventLog, stop: StopRequest, *, at_end: ExitStack
) -> int:
    """Step; returns the exit code."""
    device_of = Ranks().device
    app = start_app(config.task_name, device=lambda: device_of(args.device), video=False)
    import_modules(args.modules)
    name = simulator_of(config.task_name)
    from trainer import randomness
    from trainer.physics import step_physics
    from trainer.simulators.simulator import TaskRequest

    seed = config.seed if config.seed is not None else secrets.randbits(31)
    randomness.seed_all(seed)
    device = device_of(args.device)
    request = TaskRequest(
        task_name=config.task_name,
        num_envs=config.num_envs,
        seed=seed,
        device=device,
        physics_params=config.params,
        app=app,
        warn=lambda message: events.emit("warning", message=message),
    )
    simulator = make_simulator(name, request)
    stop.install()  # again, as in a training
    at_end.callback(simulator.close)
    events.emit(
        "started",
        task_name=config.task_name,
        simulator=name,
        device=device,
        num_envs=config.num_envs,
        seed=seed,
    )
    result = step_physics(simulator, steps=config.steps, stop=stop)
    write_summary(
        args.output,
        mode="physics",
        task_name=config.task_name,
        steps=config.steps,
        env_steps=config.steps * config.num_envs,
        env_steps_per_s=result.env_steps_per_s,
        wall_s=result.wall_s,
        task_metrics={
            "avg_fps": result.env_steps_per_s,
            "total_reward": result.total_reward,
            "collision_count": result.collision_count,
            "episode_duration": result.episode_duration_s,
            "success": result.success,
        },
    )
    events.emit("finished", steps=config.steps)
    return DONE


def _shortened(config: TrainingConfig, iterations: int) -> TrainingConfig:
    if iterations < 1:
        raise ConfigurationError(f"--dry-run: must be at least 1 iteration, not {iterations}")
    return config.model_copy(
        update={"max_iterations": iterations, "video_enabled": False, "checkpoint_url": None}
    )


def _built(
    config: TrainingConfig,
    simulator_name: str,
    args: argparse.Namespace,
    events: EventLog,
    stop: StopRequest,
    *,
    ranks: Ranks,
    app: object,
) -> "Training":
    from trainer import checkpoints, randomness
    from trainer.agent import agent_cfg_of
    from trainer.shapes import refuse_other_hidden_dims
    from trainer.simulators.simulator import TaskRequest
    from trainer.training import Training

    device = ranks.device(args.device)
    ranks.join(device)
    [seed, *_] = ranks.all_gathered(config.seed if config.seed is not None else secrets.randbits(31))
    resumed, done = None, 0
    if args.resume:
        resumed = checkpoints.first_sound(
            args.resume, lambda message: events.emit("warning", message=message)
        )
        refuse_other_hidden_dims(resumed.contents, config)
        done = checkpoints.iteration_of(resumed.contents)
    randomness.seed_all(seed + ranks.rank)
    request = TaskRequest(
        task_name=config.task_name,
        num_envs=config.num_envs,
        # Environments whose state cannot be put back start new episodes, not those of the beginning again.
        seed=randomness.later_seed(seed + ranks.rank, iterations_done=done),
        device=device,
        reward_weights=config.reward_weights or {},
        video=config.video_enabled,
        app=app,
        warn=lambda message: events.emit("warning", message=message),
    )
    simulator = make_simulator(simulator_name, request)
    stop.install()  # again: a simulator's own handler would end the process without a checkpoint
    cfg = agent_cfg_of(config, simulator.agent_cfg, multi_gpu=ranks.rsl_rl_cfg())
    training = Training(
        config, simulator, cfg, device=device, output=args.output, events=events, stop=stop, ranks=ranks
    )
    if resumed is not None:
        training.resume(resumed.contents, name=resumed.path.name)
    events.emit(
        "started",
        iteration=training.iteration,
        max_iterations=config.max_iterations,
        task_name=config.task_name,
        simulator=simulator_name,
        device=device,
        num_envs=config.num_envs,
        seed=seed,
        resumed_from=str(resumed.path) if resumed is not None else None,
    )
    return training


def _export_policy(training: "Training", events: EventLog) -> None:
    from trainer import policy

    training.alg.eval_mode()
    observations = training.env.get_observations()
    exported, problems = policy.export(training.alg.get_policy(), observations, training.output)
    for path, file_format in exported:
        events.emit("policy", path=path, format=file_format)
    for problem in problems:
        events.emit("warning", message=problem)


def _summarize(training: "Training", startup_s: float, wall_s: float, *, dry_run: bool) -> None:
    best, last = training.best_checkpoint, training.saved[-1] if training.saved else None
    reports = training.reports
    learned_s = sum(report.iteration_s for report in reports)
    env_steps = training.env_steps_per_iteration * len(reports)
    fps = env_steps / learned_s if learned_s else None
    mean_length = training.episodes.mean_length
    write_summary(
        training.output,
        mode="training",
        task_name=training.config.task_name,
        iteration=training.iteration,
        env_steps=training.env_steps,
        first_mean_reward=training.episodes.first_mean_reward,
        mean_reward=training.episodes.mean_reward,
        best_mean_reward=training.episodes.best_mean_reward,
        best_checkpoint=(best or last).path if best or last else None,  # type: ignore[union-attr]
        final_checkpoint=last.path if last else None,
        mean_episode_length=mean_length,
        wall_s=wall_s,
        env_steps_per_s=fps,
        task_metrics={
            "avg_fps": fps,
            "total_reward": training.episodes.mean_reward,
            "collision_count": 0,
            "episode_duration": mean_length * training.simulator.step_dt_s
            if mean_length is not None
            else None,
            "success": True,
        },
        **({"dry_run": _measured(training, startup_s, fps)} if dry_run else {}),
    )


def _measured(training: "Training", startup_s: float, fps: float | None) -> dict[str, float | None]:
    from trainer import memory

    times = [report.iteration_s for report in training.reports]
    # The first iteration warms caches up; a full run has it once.
    return {
        "startup_s": startup_s,
        "iteration_s": statistics.median(times[1:] or times),
        "env_steps_per_s": fps,
        "peak_host_bytes": memory.peak_host_bytes(),
        "peak_gpu_bytes": memory.peak_gpu_bytes(training.device),
    }
