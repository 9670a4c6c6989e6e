"""Where each field of TrainingConfig stands in the composed configuration; nothing else may stand there."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from canard.members import REWARD_PREFIX
from canard_hydra.errors import ExperimentError, KeyedError

RUN_FIELDS = (
    "num_envs",
    "max_iterations",
    "seed",
    "gpu_count",
    "video_enabled",
    "video_interval",
    "checkpoint_url",
)
TASK_FIELDS = ("task_name", "code_url", "code_ref", "reward_weights")
PPO_FIELDS = (
    "learning_rate",
    "clip_param",
    "entropy_coef",
    "gamma",
    "lam",
    "num_learning_epochs",
    "num_mini_batches",
    "desired_kl",
    "max_grad_norm",
    "schedule",
)
NETWORK_FIELDS = ("actor_hidden_dims", "critic_hidden_dims", "activation", "init_noise_std")

REWARD_KEY = f"task.{REWARD_PREFIX}"
"""What the key of one reward weight begins with."""

RECOMMENDED = ("num_envs", "max_iterations")
"""What a task may recommend; the run-level keys of the same name take it unless they are set."""

SECTIONS = {
    "task": (*TASK_FIELDS, *RECOMMENDED),
    "ppo": PPO_FIELDS,
    "network": NETWORK_FIELDS,
}
CONTROL_KEYS = (
    "name",
    "mode",
    "wait",
    "tags",
    "zip",
    "repeats",
    "reuse",
    "max_cost",
    "dry_run_iterations",
    "metric",
    "platform",
    "experiment",
    "sweep",
)
"""Keys of the run itself; the last two are groups whose options say nothing under their own name."""

KEY_OF_FIELD = {
    **{field: field for field in RUN_FIELDS},
    **{field: f"task.{field}" for field in TASK_FIELDS},
    **{field: f"ppo.{field}" for field in PPO_FIELDS},
    **{field: f"network.{field}" for field in NETWORK_FIELDS},
}
FIELD_OF_KEY = {key: field for field, key in KEY_OF_FIELD.items()}

INTEGERS = (
    "num_envs",
    "max_iterations",
    "seed",
    "gpu_count",
    "video_interval",
    "ppo.num_learning_epochs",
    "ppo.num_mini_batches",
)
SWITCHES = ("video_enabled",)
WIDTHS = ("network.actor_hidden_dims", "network.critic_hidden_dims")
SCHEDULES = ("ppo.schedule",)

KNOWN_KEYS = (
    *KEY_OF_FIELD.values(),
    *(f"task.{name}" for name in RECOMMENDED),
    *CONTROL_KEYS[:-2],
    "platform.api_url",
)


def training_fields(config: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of TrainingConfig from a resolved configuration; what is null is left out: the task's own value.

    Raises:
        ExperimentError: a section is no mapping, or has a key that means nothing.
    """
    fields = {name: config.get(name) for name in RUN_FIELDS}
    for section, known in SECTIONS.items():
        values = _section(config, section)
        for name in values:
            if name not in known:
                raise KeyedError(unknown_key(f"{section}.{name}"), key=f"{section}.{name}")
        fields.update({name: values.get(name) for name in known if name not in RECOMMENDED})
    fields["reward_weights"] = _weights(fields["reward_weights"])
    return {name: value for name, value in fields.items() if value is not None}


def field_of_key(key: str) -> str | None:
    """`ppo.learning_rate` -> `learning_rate`, `task.reward_weights.alive` -> `reward_weights.alive`."""
    if key in FIELD_OF_KEY:
        return FIELD_OF_KEY[key]
    reward = f"task.{REWARD_PREFIX}"
    if key.startswith(reward):
        return key.removeprefix("task.")
    return None


def key_of_field(field: str) -> str:
    """The inverse of `field_of_key`; a field that has no place of its own is its own key."""
    top, dot, rest = field.partition(".")
    return f"{KEY_OF_FIELD.get(top, top)}{dot}{rest}"


def unknown_key(key: str, *, known: Iterable[str] = KNOWN_KEYS) -> str:
    """`unknown key 'ppo.lr'; did you mean 'ppo.learning_rate'?`"""
    near = nearest_key(key, known)
    if near:
        return f"unknown key {key!r}; did you mean {near!r}?"
    section = key.partition(".")[0]
    beside = [one for one in known if one.startswith(f"{section}.")]
    if beside:
        return f"unknown key {key!r}; known are {', '.join(beside)}"
    return f"unknown key {key!r}; to see them all: canard-hydra --cfg job"


def example_of(key: str) -> str:
    """`, as in seed=1`; nothing for a key that means no field."""
    kinds = ((INTEGERS, "1"), (SWITCHES, "true"), (WIDTHS, "[256,128]"), (SCHEDULES, "fixed"))
    for keys, value in kinds:
        if key in keys:
            return f", as in {key}={value}"
    return f", as in {key}=0.5" if key in FIELD_OF_KEY or key.startswith(REWARD_KEY) else ""


def nearest_key(key: str, known: Iterable[str] = KNOWN_KEYS) -> str | None:
    """The key that was probably meant: by spelling, by initials (`lr`), or by a word in common."""
    best = max(known, key=lambda one: _likeness(key, one))
    return best if _likeness(key, best) >= 0.6 else None


def _likeness(key: str, known: str) -> float:
    """From 0 to about 1; the last part counts, the section before it decides between equals."""
    said, meant = key.rpartition(".")[2].lower(), known.rpartition(".")[2]
    words, initials = meant.split("_"), "".join(word[0] for word in meant.split("_"))
    likeness = difflib.SequenceMatcher(None, said, meant).ratio()
    if said == initials and len(said) > 1:
        likeness = max(likeness, 0.8)
    if len(said) > 2 and (said in meant or any(word == part for word in words for part in _parts(said))):
        likeness = max(likeness, 0.7)
    whole = difflib.SequenceMatcher(None, key.lower(), known).ratio()
    return likeness + 0.05 * whole


def _parts(name: str) -> list[str]:
    return [part for part in re.split(r"[_\-]", name) if len(part) > 2]


def _section(config: Mapping[str, Any], section: str) -> Mapping[str, Any]:
    values = config.get(section)
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise ExperimentError(
            f"{section}: is {values!r}, but must be a group of keys; choose an option of conf/{section}/"
        )
    return values


def _weights(weights: Any) -> Any:
    """A weight of null is the task's own; no weights at all is null."""
    if not isinstance(weights, Mapping):
        return weights
    return {term: weight for term, weight in weights.items() if weight is not None} or None
