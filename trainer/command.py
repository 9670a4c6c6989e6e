"""The command: arguments, exit codes, and what is said when it ends badly."""

import argparse
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from canard.models import PhysicsConfig, TrainingConfig
from trainer import launcher
from trainer.errors import (
    CRASHED,
    DIVERGED,
    DONE,
    INTERRUPTED,
    PREEMPTED,
    WRONG_CONFIG,
    ConfigurationError,
    DivergenceError,
    Preempted,
)
from trainer.events import EventLog
from trainer.ranks import Ranks
from trainer.stop import StopRequest

ModelT = TypeVar("ModelT", bound=BaseModel)

CLOSE_TIMEOUT_S = 30.0

DESCRIPTIONS = {
    "train": "Train one policy with PPO. Other commands: evaluate, physics.",
    "evaluate": "Run episodes of a finished policy and measure.",
    "physics": "Step a simulator and measure.",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and exit: 0 done, 2 wrong config or environment, 3 diverged, 75 stopped, else a crash."""
    started = time.monotonic()
    said = list(sys.argv[1:] if arguments is None else arguments)
    mode = said[0] if said[:1] in (["physics"], ["evaluate"]) else "train"
    args = _parser(mode).parse_args(said if mode == "train" else said[1:])
    stop = StopRequest()
    stop.install()
    try:
        args.output.mkdir(parents=True, exist_ok=True)
        ranks = Ranks.of(os.environ)
        events = EventLog(args.output / "events.jsonl", failures_only=not ranks.is_first)
    except OSError as error:
        sys.exit(_cannot_write(args.output, error))
    at_end = ExitStack()
    code = _guarded(
        lambda: _run(args, mode=mode, events=events, stop=stop, started=started, at_end=at_end), events
    )
    events.close()
    if code == DONE:
        _close(at_end)
    sys.stdout.flush()
    sys.stderr.flush()
    # A simulator's exit hooks can turn a crash into success, or never return; everything is on disk by now.
    os._exit(code)


def _cannot_write(output: Path, error: OSError) -> int:
    print(f"trainer: --output {output}: {error.strerror}", file=sys.stderr)  # noqa: T201
    return WRONG_CONFIG


def _close(at_end: ExitStack) -> None:
    """Close the simulator; one that hangs or fails at this is left to the end of the process.

    Only after success: a simulator that ends the process by itself does so with a 0 of its own.
    """
    deadline = threading.Timer(CLOSE_TIMEOUT_S, os._exit, [DONE])
    deadline.daemon = True
    deadline.start()
    try:
        at_end.close()
    except Exception:
        traceback.print_exc()
    finally:
        deadline.cancel()


def _parser(mode: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m trainer" + (f" {mode}" if mode != "train" else ""), description=DESCRIPTIONS[mode]
    )
    evaluates = mode == "evaluate"
    parser.add_argument("--config", type=Path, required=not evaluates, help="resolved config, JSON")
    parser.add_argument(
        "--output",
        type=Path,
        required=not evaluates,
        default=Path("evaluation"),
        help="folder that everything is written under",
    )
    parser.add_argument(
        "--import", dest="modules", action="append", default=[], help="module to import first"
    )
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    if evaluates:
        parser.add_argument("--checkpoint", type=Path, required=True, help="the policy")
        parser.add_argument("--episodes", type=int, default=100)
        parser.add_argument("--num-envs", type=int, help="default: as trained, 64 at most")
        parser.add_argument("--seed", type=int, help="default: as trained")
    if mode == "train":
        parser.add_argument(
            "--resume",
            type=Path,
            action="append",
            default=[],
            help="checkpoint to go on from; of several, newest first, the first that is sound",
        )
        parser.add_argument("--dry-run", type=int, metavar="N", help="train N iterations and measure")
    return parser


def _run(
    args: argparse.Namespace,
    *,
    mode: str,
    events: EventLog,
    stop: StopRequest,
    started: float,
    at_end: ExitStack,
) -> int:
    if mode == "evaluate":
        from trainer.evaluation import run_evaluation

        config_said = _read(args.config, TrainingConfig) if args.config is not None else None
        return run_evaluation(args, config_said, events, stop, at_end=at_end)
    from trainer import task

    if mode == "physics":
        return task.run_physics(_read(args.config, PhysicsConfig), args, events, stop, at_end=at_end)
    config = _read(args.config, TrainingConfig)
    if config.gpu_count > 1 and not launcher.is_a_rank():
        return launcher.launch(config.gpu_count, events, stop)
    return task.run_training(config, args, events, stop, started=started, at_end=at_end)


def _read(path: Path, model: type[ModelT]) -> ModelT:
    try:
        return model.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"--config {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"--config {path}: is no UTF-8 text ({error})") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ConfigurationError(
            f"{path.name}: {field}: {first['msg']}" if field else f"{path.name}: {first['msg']}"
        ) from error


def _guarded(run: Callable[[], int], events: EventLog) -> int:  # noqa: PLR0911 - a table of endings
    try:
        return run()
    except ConfigurationError as error:
        return _failed(events, error, WRONG_CONFIG)
    except Preempted:
        return PREEMPTED
    except KeyboardInterrupt:
        return INTERRUPTED
    except DivergenceError as error:
        if not Ranks.of(os.environ).is_first:
            return DIVERGED  # as all ranks do, and the first tells it
        return _failed(events, error, DIVERGED, iteration=error.iteration, term=error.term)
    except Exception as error:  # the process ends here, and the reason must be in the events
        traceback.print_exc()
        return _failed(events, error, CRASHED)


def _failed(events: EventLog, error: Exception, code: int, **fields: object) -> int:
    message = str(error) or type(error).__name__
    # Of several ranks the first to fail tells why; the others lost contact to it.
    if not (launcher.is_a_rank() and events.has_failure()):
        events.emit("failed", error_type=type(error).__name__, message=message, exit_code=code, **fields)
    print(f"trainer: {message}", file=sys.stderr)  # noqa: T201
    return code
