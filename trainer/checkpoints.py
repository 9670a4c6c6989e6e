"""Checkpoints: rsl-rl's own keys, ours under `canard`, whole or absent, loaded without unpickling code."""

import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from trainer.errors import ConfigurationError
from trainer.files import sha256_of, write_whole
from trainer.migration import ForeignCheckpointError, migrated

FOLDER = "checkpoints"
OUR_KEY = "canard"
OUR_VERSION = 1
NAME = re.compile(r"model_(\d+)\.pt")


@dataclass(frozen=True, kw_only=True)
class SavedCheckpoint:
    """A checkpoint on disk; `path` is relative to the output folder."""

    iteration: int
    path: str
    sha256: str
    size_bytes: int
    mean_reward: float | None


def save(
    output: Path, *, iteration: int, mean_reward: float | None, contents: dict[str, Any]
) -> SavedCheckpoint:
    """Write `checkpoints/model_{iteration}.pt`; iteration counts the ones done."""
    path = output / FOLDER / f"model_{iteration}.pt"
    write_whole(path, lambda temporary: torch.save(contents, temporary))
    return SavedCheckpoint(
        iteration=iteration,
        path=str(path.relative_to(output)),
        sha256=sha256_of(path),
        size_bytes=path.stat().st_size,
        mean_reward=mean_reward,
    )


@dataclass(frozen=True, kw_only=True)
class LoadedCheckpoint:
    """What to go on from."""

    path: Path
    contents: dict[str, Any]


def first_sound(paths: Sequence[Path], warn: Callable[[str], None]) -> LoadedCheckpoint:
    """The first that can be gone on from; each one before it is told with the reason.

    Raises:
        ConfigurationError: none can; all are named.
    """
    reasons: list[str] = []
    for number, path in enumerate(paths, start=1):
        try:
            return LoadedCheckpoint(path=path, contents=load(path))
        except ConfigurationError as error:
            reasons.append(str(error))
            if len(paths) > 1:
                warn(f"{error}; {'the next one is tried' if number < len(paths) else 'there is no other'}")
    raise ConfigurationError("; ".join(reasons))


def load(path: Path) -> dict[str, Any]:
    """The checkpoint on the CPU, with the keys of rsl-rl 5.

    Raises:
        ConfigurationError: missing, damaged, no checkpoint, not finite, or not just plain values.
    """
    if not path.is_file():
        raise ConfigurationError(f"checkpoint {path}: no such file{_others(path)}")
    try:
        contents = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # damage shows as almost any error, and nobody's code runs in there
        raise ConfigurationError(f"checkpoint {path}: {_why_unreadable(error)}") from error
    try:
        contents = migrated(contents if isinstance(contents, dict) else {})
    except ForeignCheckpointError as error:
        raise ConfigurationError(f"checkpoint {path}: {error}") from error
    _refuse_unknown_layout(path, contents)
    _refuse_nonfinite(path, contents)
    return contents


def on_cpu(value: Any) -> Any:
    """The same plain values, with all tensors on the CPU."""
    if torch.is_tensor(value):
        return value.cpu()
    if isinstance(value, dict):
        return {key: on_cpu(item) for key, item in value.items()}
    return [on_cpu(item) for item in value] if isinstance(value, list) else value


def iteration_of(contents: dict[str, Any]) -> int:
    """Iterations done. rsl-rl's own runner saves the index of the last one, from 0."""
    ours = contents.get(OUR_KEY)
    if ours is not None:
        return int(ours["iteration"])
    return int(contents.get("iter", -1)) + 1


def _why_unreadable(error: Exception) -> str:
    text = str(error)
    refused = re.search(r"GLOBAL ([\w.]+)", text)
    if isinstance(error, pickle.UnpicklingError) and refused:
        return (
            f"holds {refused[1]}; only tensors and plain values are loaded, since anything else can run code."
            " If you trust the file, torch.load it with weights_only=False, set its 'infos' to None, and"
            " torch.save it again"
        )
    return f"cannot be read ({text.partition(chr(10))[0] or type(error).__name__})"


def _refuse_unknown_layout(path: Path, contents: dict[str, Any]) -> None:
    ours = contents.get(OUR_KEY)
    if ours is not None and not (isinstance(ours, dict) and ours.get("version") == OUR_VERSION):
        version = ours.get("version") if isinstance(ours, dict) else None
        raise ConfigurationError(
            f"checkpoint {path}: has layout {version!r} of canard, this version knows {OUR_VERSION};"
            " update the trainer"
        )
    if ours is None and not isinstance(contents.get("iter", -1), int):
        raise ConfigurationError(f"checkpoint {path}: its iter is {contents['iter']!r}, not a number")


def _refuse_nonfinite(path: Path, contents: dict[str, Any]) -> None:
    for name, tensor in _tensors(contents, prefix=""):
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise ConfigurationError(f"checkpoint {path}: {name} is not finite")


def _tensors(state: dict[Any, Any], *, prefix: str) -> Iterator[tuple[str, torch.Tensor]]:
    """Of the networks, their normalisers and the optimizer, each with its dotted name."""
    for key, value in state.items():
        if torch.is_tensor(value):
            yield f"{prefix}{key}", value
        elif isinstance(value, dict) and (prefix or str(key).endswith("state_dict")):
            yield from _tensors(value, prefix=f"{prefix}{key}.")


def _others(path: Path) -> str:
    if not path.parent.is_dir():
        return ""
    numbers = sorted(int(m[1]) for m in map(NAME.fullmatch, (p.name for p in path.parent.iterdir())) if m)
    return "; there are " + ", ".join(f"model_{n}.pt" for n in numbers) if numbers else ""
