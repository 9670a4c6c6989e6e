"""Changing an Isaac Lab task's configuration: reward weights, parameters, agent settings.

Works on the configuration objects alone and imports nothing of Isaac Lab: it is the same for every version.
"""

import difflib
from collections.abc import Mapping
from typing import Any

from trainer.errors import ConfigurationError

LISTED_NAMES = 40
"""So many known names an error lists at most."""


def set_reward_weights(env_cfg: Any, weights: Mapping[str, float]) -> None:
    """Set the weights by exact name, always as float; an unknown name is refused, listing the known ones.

    A manager-based task has reward terms (`rewards.<term>.weight`). A direct task has numeric attributes of
    its own in whatever spelling its author chose, so the name must be the attribute's.
    """
    terms = reward_terms(env_cfg)
    known = list(reward_attributes(env_cfg) if terms is None else terms)
    for name in weights:
        if name not in known:
            kind = "numeric attribute" if terms is None else "reward term"
            raise ConfigurationError(
                f"reward_weights.{name}: this task has no {kind} {name!r}; {_known(name, known)}"
            )
    for name, weight in weights.items():
        if terms is None:
            setattr(env_cfg, name, float(weight))
        else:
            terms[name].weight = float(weight)


def reward_terms(env_cfg: Any) -> dict[str, Any] | None:
    """Reward terms of a manager-based task by name; None for a direct task."""
    rewards = getattr(env_cfg, "rewards", None)
    if rewards is None:
        return None
    terms = rewards if isinstance(rewards, Mapping) else vars(rewards)
    return {name: term for name, term in terms.items() if hasattr(term, "weight")}


def reward_attributes(env_cfg: Any) -> dict[str, float]:
    """Numeric attributes that a direct task adds to those that every direct task has."""
    return {
        name: float(value)
        for name, value in vars(env_cfg).items()
        if _is_number(value) and not name.startswith("_") and name not in _attributes_of_every_task(env_cfg)
    }


def set_parameter(env_cfg: Any, path: str, value: Any) -> None:
    """Set one attribute by its dotted path, such as `sim.dt` or `episode_length_s`."""
    *owners, name = path.split(".")
    owner = env_cfg
    for owner_name in owners:
        owner = _attribute(owner, owner_name, path)
    now = _attribute(owner, name, path)
    if _is_number(now) and not _is_number(value):
        raise ConfigurationError(f"params.{path}: must be a number, not {value!r}")
    setattr(owner, name, float(value) if isinstance(now, float) else value)


def _attribute(owner: Any, name: str, path: str) -> Any:
    if isinstance(owner, Mapping):
        raise ConfigurationError(f"params.{path}: {name!r} lies in a dict, which cannot be set")
    names = [known for known in vars(owner) if not known.startswith("_")]
    if name not in names:
        raise ConfigurationError(
            f"params.{path}: this task's configuration has no {name!r}; {_known(name, names)}"
        )
    return getattr(owner, name)


def _attributes_of_every_task(env_cfg: Any) -> set[str]:
    """What Isaac Lab's own base class has, which is no reward weight (decimation, episode_length_s, ...)."""
    bases = [cls for cls in type(env_cfg).__mro__ if cls.__module__.split(".")[0] == "isaaclab"]
    return {name for cls in bases for name in (*vars(cls), *getattr(cls, "__annotations__", {}))}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _known(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    listed = ", ".join(sorted(known)[:LISTED_NAMES]) + (", ..." if len(known) > LISTED_NAMES else "")
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}known: {listed or 'none'}"
