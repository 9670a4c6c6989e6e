"""Checkpoints: rsl-rl's own keys, ours under `canard`, whole or absent, loaded without unpickling code."""

import pickle
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from trainer.errors import ConfigurationError
from trainer.files import sha256_of, write_whole

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


def load(path: Path) -> dict[str, Any]:
    """The checkpoint, on the CPU.

    Raises:
        ConfigurationError: missing, truncated, no checkpoint, or not only tensors and plain values.
    """
    if not path.is_file():
        raise ConfigurationError(f"checkpoint {path}: no such file{_others(path)}")
    try:
        contents = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, ValueError, KeyError, OSError, pickle.UnpicklingError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigurationError(f"checkpoint {path}: cannot be read ({reason})") from error
    if not isinstance(contents, dict) or not {"actor_state_dict", "critic_state_dict"} <= contents.keys():
        raise ConfigurationError(f"checkpoint {path}: not made by rsl-rl 4 or later (no actor_state_dict)")
    _refuse_nonfinite(path, contents)
    return contents


def iteration_of(contents: dict[str, Any]) -> int:
    """Iterations done. rsl-rl's own runner saves the index of the last one, from 0."""
    ours = contents.get(OUR_KEY)
    if ours is not None:
        return int(ours["iteration"])
    return int(contents.get("iter", -1)) + 1


def refuse_other_shapes(contents: dict[str, Any], model: torch.nn.Module, *, key: str, name: str) -> None:
    """One sentence instead of a wall of tensors.

    Raises:
        ConfigurationError: the network of the checkpoint is not the one of the config.
    """
    saved = {n: tuple(t.shape) for n, t in contents[key].items() if torch.is_tensor(t)}
    wanted = {n: tuple(t.shape) for n, t in model.state_dict().items()}
    if saved == wanted:
        return
    saved_layers, wanted_layers = _layers(saved), _layers(wanted)
    if saved_layers != wanted_layers:
        raise ConfigurationError(
            f"checkpoint and config disagree on the {name}: checkpoint has {saved_layers}, config has"
            f" {wanted_layers} (inputs, hidden dims, outputs)"
        )
    different = sorted(set(saved.items()) ^ set(wanted.items()))[0][0]
    raise ConfigurationError(
        f"checkpoint and config disagree on the {name}: {different} is not in both alike"
    )


def _layers(shapes: dict[str, tuple[int, ...]]) -> list[int]:
    weights = [shape for name, shape in shapes.items() if name.startswith("mlp.") and len(shape) == 2]
    return [weights[0][1], *(shape[0] for shape in weights)] if weights else []


def _refuse_nonfinite(path: Path, contents: dict[str, Any]) -> None:
    for key in ("actor_state_dict", "critic_state_dict"):
        for name, tensor in contents[key].items():
            if torch.is_tensor(tensor) and tensor.is_floating_point() and not torch.isfinite(tensor).all():
                raise ConfigurationError(f"checkpoint {path}: {key}.{name} is not finite")


def _others(path: Path) -> str:
    if not path.parent.is_dir():
        return ""
    numbers = sorted(int(m[1]) for m in map(NAME.fullmatch, (p.name for p in path.parent.iterdir())) if m)
    return "; there are " + ", ".join(f"model_{n}.pt" for n in numbers) if numbers else ""
