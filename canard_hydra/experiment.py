"""From composed members to what is planned, tried or submitted: one RunConfig, every member checked."""

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, PlainValidator, StrictBool, ValidationError
from pydantic_core import PydanticCustomError

from canard.members import REWARD_PREFIX, members
from canard.models import Float, Int, RequestModel, RunConfig, TrainingConfig
from canard_hydra.composed import Composed
from canard_hydra.errors import ExperimentError
from canard_hydra.fields import field_of_key, key_of_field

SUBMISSION = "submission.json"
SHOWN_NAMES = 4
NAME_CHARS = 300
SHOWN_FAULTS = 3
INDEX = re.compile(r"\.\d+$")


Metric = Literal["mean_reward", "best_mean_reward", "mean_episode_length"]
"""Of a finished training: its last value, or the best of all iterations."""


def _metrics(value: Any) -> Any:
    """As one type, so that a wrong name is one complaint and not one by type."""
    for name in value if isinstance(value, list) and value else [value]:
        if name not in get_args(Metric):
            raise PydanticCustomError(
                "metric", "must be {names}, or a list of these", {"names": " or ".join(get_args(Metric))}
            )
    return value


class Platform(RequestModel):
    """The chosen option of conf/platform."""

    kind: Literal["local", "remote"] = "local"
    """local: the one of this machine, started when it is not running."""
    api_url: str | None = None
    dashboard_url: str | None = None
    wait: bool = False


class Control(RequestModel):
    """The run-level keys that are no fields of a training."""

    name: str | None = None
    mode: Literal["submit", "plan", "dry_run"] = "submit"
    wait: bool | None = None
    tags: dict[str, str] = Field(default_factory=dict)
    reuse: StrictBool = True
    max_cost: Float | None = Field(default=None, ge=0)
    dry_run_iterations: Int = Field(default=3, ge=1)
    metric: Annotated[Metric | list[Metric], PlainValidator(_metrics)] = "mean_reward"
    platform: Platform = Platform(wait=True)


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The shape of a multirun: one size per swept key, and how many members they make."""

    keys: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()

    def __str__(self) -> str:
        return " x ".join(f"{size:,}" for size in self.sizes)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """All that is known before anything is sent."""

    name: str
    control: Control
    run: RunConfig
    configs: tuple[TrainingConfig, ...]
    params: tuple[Mapping[str, Any], ...]
    """The fields that set each member apart, and their values."""
    swept: tuple[tuple[str, ...], ...]
    """The overrides that set each member apart."""
    sweep: Sweep
    record: Path
    """The file in which a submit says what it sent and what came of it."""

    @property
    def wait(self) -> bool:
        """Whether the command stays until the run has ended."""
        return self.control.platform.wait if self.control.wait is None else self.control.wait


COMMON_KEYS = tuple(key for key in Control.model_fields if key != "name")


def make_experiment(
    composed: Sequence[Composed],
    *,
    record: Path = Path(SUBMISSION),
    swept_keys: Sequence[str] = (),
    zipped: Sequence[Sequence[str]] = (),
) -> Experiment:
    """One run of all members.

    Args:
        record: where a submit says what it sent.
        swept_keys: override keys that were swept; their fields set the members apart even where equal.
        zipped: groups of them that move together.

    Raises:
        ExperimentError: naming each member that is wrong, the override and the bound, or what they should
            agree on and do not.
    """
    control = _common_control(composed)
    configs = _validated(composed)
    fields = [field_of_key(key.lstrip("+")) for key in swept_keys]
    params = _params(configs, [field for field in fields if field is not None])
    run = _run_config(configs, params, control)
    return Experiment(
        name=_name(composed),
        control=control,
        run=run,
        configs=tuple(configs),
        params=tuple(params),
        swept=tuple(one.overrides if swept_keys else () for one in composed),
        sweep=_shape(composed, swept_keys, zipped),
        record=record,
    )


def _common_control(composed: Sequence[Composed]) -> Control:
    """What holds for the whole run."""
    for index, one in enumerate(composed):
        for key in COMMON_KEYS:
            if one.control.get(key) != composed[0].control.get(key):
                raise ExperimentError(
                    f"{key}: differs between members 0 and {index}, but a multirun is one run;"
                    f" give {key} one value"
                )
    try:
        return Control.model_validate(_known_control(composed[0]))
    except ValidationError as error:
        raise ExperimentError("; ".join(_complaint(one) for one in error.errors())) from None


def faults_of(composed: Composed) -> list[tuple[str, str]]:
    """Key and complaint of every value of one member that a model refuses; none when it is right."""
    faults: list[Any] = []
    for model, values in ((TrainingConfig, composed.fields), (Control, _known_control(composed))):
        try:
            model.model_validate(values)
        except ValidationError as error:
            faults += error.errors()
    return [(INDEX.sub("", _key(fault)), _complaint(fault)) for fault in faults]


def _known_control(composed: Composed) -> dict[str, Any]:
    known = Control.model_fields
    return {key: value for key, value in composed.control.items() if key in known and value is not None}


def _validated(composed: Sequence[Composed]) -> list[TrainingConfig]:
    configs, faults = [], {}
    for index, one in enumerate(composed):
        try:
            configs.append(TrainingConfig.model_validate(one.fields))
        except ValidationError as error:
            faults[index] = error.errors()
    if faults:
        raise ExperimentError(_told(composed, faults))
    return configs


def _told(composed: Sequence[Composed], faults: Mapping[int, Sequence[Any]]) -> str:
    """A line per wrong member, the first few; one line when it is the same with all of them."""
    told = {index: "; ".join(_complaint(one) for one in found) for index, found in faults.items()}
    if len(told) == len(composed) and len(set(told.values())) == 1:
        return _with_origins(composed[0], faults[0])
    lines = [
        f"member {index} ({' '.join(composed[index].overrides)}): {_with_origins(composed[index], found)}"
        for index, found in itertools.islice(faults.items(), SHOWN_FAULTS)
    ]
    more = [f"and {len(faults) - SHOWN_FAULTS} more members"] if len(faults) > SHOWN_FAULTS else []
    return "\n".join([*lines, *more])


def _with_origins(composed: Composed, faults: Sequence[Any]) -> str:
    """The complaints, each with where its value was written unless that is plain."""
    # Here: it needs Hydra's parts, and there is seldom an error.
    from canard_hydra.origin import Wording, written

    wording = Wording(config_name=composed.config_name, said=composed.said, swept=composed.overrides)
    return "; ".join(_complaint(fault) + written(INDEX.sub("", _key(fault)), wording) for fault in faults)


def _complaint(fault: Any) -> str:
    """`ppo.learning_rate: should be greater than 0, not -1`"""
    key = _key(fault)
    if fault["type"] == "missing":
        return f"{key}: is missing; say it, as in {key}=..."
    message = fault["msg"].replace("Input should", "should", 1)
    given = "" if " not " in message or fault["type"] == "extra_forbidden" else f", not {fault['input']!r}"
    return f"{key}: {message}{given}" if key else f"{message}{given}"


def _key(fault: Any) -> str:
    loc = [str(part) for part in fault["loc"]]
    return key_of_field(".".join(loc)) if loc else ""


def _params(configs: Sequence[TrainingConfig], swept: Sequence[str]) -> list[dict[str, Any]]:
    flat = [_flat(config) for config in configs]
    names = dict.fromkeys(swept)
    for name in dict.fromkeys(name for fields in flat for name in fields):
        if any(fields.get(name) != flat[0].get(name) for fields in flat):
            names.setdefault(name)
    return [{name: fields[name] for name in names if name in fields} for fields in flat]


def _flat(config: TrainingConfig) -> dict[str, Any]:
    """Every field by name; a reward weight by `reward_weights.<term>`."""
    fields = config.model_dump()
    weights = fields.pop("reward_weights") or {}
    return fields | {f"{REWARD_PREFIX}{term}": weight for term, weight in weights.items()}


def _run_config(
    configs: Sequence[TrainingConfig], params: Sequence[Mapping[str, Any]], control: Control
) -> RunConfig:
    """The shared base with a delta per member; the server makes the same members of it."""
    differing = {name for one in params for name in one}
    base = TrainingConfig.model_validate(_without(configs[0], differing))
    run = RunConfig(
        mode="training",
        training_config=base,
        tasks=[dict(one) for one in params] if len(params) > 1 or params[0] else None,
        tags=control.tags or None,
        reuse=control.reuse,
        max_cost=control.max_cost,
    )
    made = [member.config.model_dump() for member in members(run)]
    if made != [config.model_dump() for config in configs]:
        raise AssertionError("base and deltas do not make the members that were composed")
    return run


def _without(config: TrainingConfig, names: Iterable[str]) -> dict[str, Any]:
    left_out = set(names)
    fields = config.model_dump(exclude_none=True)
    weights = fields.pop("reward_weights", {})
    kept = {name: value for name, value in fields.items() if name not in left_out or name == "task_name"}
    shared = {term: weight for term, weight in weights.items() if f"{REWARD_PREFIX}{term}" not in left_out}
    return kept | ({"reward_weights": shared} if shared else {})


def _name(composed: Sequence[Composed]) -> str:
    """What all members are called; the names one after the other where they differ."""
    names = list(dict.fromkeys(one.control.get("name") or one.task_choice or "training" for one in composed))
    if len(names) == 1:
        return names[0]
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return (", ".join(names[:SHOWN_NAMES]) + more)[:NAME_CHARS]


def _shape(composed: Sequence[Composed], swept_keys: Sequence[str], zipped: Sequence[Sequence[str]]) -> Sweep:
    """Sizes by key where the members are their product; else one size: how many there are.

    Keys that move together count as one.
    """
    together = {key: "+".join(group) for group in zipped for key in group}
    points: dict[str, set[tuple[str, ...]]] = {}
    for one in composed:
        point: dict[str, tuple[str, ...]] = {}
        for override in one.overrides:
            key = override.partition("=")[0]
            axis = together.get(key.lstrip("+"), key)
            point[axis] = (*point.get(axis, ()), override)
        for axis, texts in point.items():
            points.setdefault(axis, set()).add(texts)
    sizes = {axis: len(seen) for axis, seen in points.items()}
    if not sizes or math.prod(sizes.values()) != len(composed):
        return Sweep(keys=tuple(swept_keys), sizes=(len(composed),))
    return Sweep(keys=tuple(sizes), sizes=tuple(sizes.values()))
