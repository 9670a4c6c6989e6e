"""From one RunConfig to its members: the same function plans on a laptop and creates tasks on a server."""

import itertools
import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from canard.errors import InvalidRequestError
from canard.models import PhysicsConfig, RunConfig, TrainingConfig

REWARD_PREFIX = "reward_weights."


@dataclass(frozen=True, kw_only=True)
class Member:
    """One task to be: `params` are the values that set it apart."""

    index: int
    params: dict[str, Any]
    config: TrainingConfig | PhysicsConfig


def count_members(config: RunConfig) -> int:
    """How many tasks the run has, without making them.

    Raises:
        InvalidRequestError: num_samples is larger than the product of the swept values.
    """
    if config.tasks is not None:
        return len(config.tasks)
    product = math.prod(len(sweep.values) for sweep in config.sweep_configs or ())
    if config.num_samples is None:
        return product
    if config.num_samples > product:
        raise InvalidRequestError(
            f"num_samples is {config.num_samples}, but the swept values make only {product} combinations",
            field="num_samples",
        )
    return config.num_samples


def members(config: RunConfig) -> Iterator[Member]:
    """Every member, validated, in order: the last swept parameter varies fastest.

    Raises:
        InvalidRequestError: naming the member, the field and what was wrong.
    """
    _refuse_repeated_parameters(config)
    make = _training_member if config.mode == "training" else _physics_member
    for index, params in enumerate(_params(config)):
        try:
            yield Member(index=index, params=params, config=make(config, params))
        except ValidationError as error:
            raise invalid_member(index, params, error) from None


def invalid_member(index: int, params: Mapping[str, Any], error: ValidationError) -> InvalidRequestError:
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    values = ", ".join(f"{name}={value!r}" for name, value in params.items())
    where = f"member {index} ({values})" if params else f"member {index}"
    return InvalidRequestError(
        f"{where}: {field}: {first['msg']}" if field else f"{where}: {first['msg']}", field=field or None
    )


def with_params(base: TrainingConfig, params: Mapping[str, Any]) -> TrainingConfig:
    """`base` with some fields replaced; `reward_weights.<term>` sets one weight and keeps the others.

    Raises:
        pydantic.ValidationError: a field is unknown or out of bounds.
    """
    fields = base.model_dump(exclude_unset=True)
    for name, value in params.items():
        if name.startswith(REWARD_PREFIX):
            fields["reward_weights"] = {
                **(fields.get("reward_weights") or {}),
                name.removeprefix(REWARD_PREFIX): value,
            }
        else:
            fields[name] = value
    return TrainingConfig.model_validate(fields)


def _params(config: RunConfig) -> Iterator[dict[str, Any]]:
    if config.tasks is not None:
        yield from config.tasks
        return
    sweeps = config.sweep_configs or []
    names = [sweep.parameter for sweep in sweeps]
    if config.num_samples is None:
        for values in itertools.product(*(sweep.values for sweep in sweeps)):
            yield dict(zip(names, values, strict=True))
        return
    product = math.prod(len(sweep.values) for sweep in sweeps)
    drawn = random.Random(config.sample_seed or 0).sample(range(product), count_members(config))  # noqa: S311
    for number in sorted(drawn):
        yield _combination(config, number)


def _combination(config: RunConfig, number: int) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for sweep in reversed(config.sweep_configs or []):
        number, digit = divmod(number, len(sweep.values))
        params[sweep.parameter] = sweep.values[digit]
    return dict(reversed(params.items()))


def _training_member(config: RunConfig, params: dict[str, Any]) -> TrainingConfig:
    assert config.training_config is not None  # noqa: S101 - RunConfig refuses this
    return with_params(config.training_config, params)


def _physics_member(config: RunConfig, params: dict[str, Any]) -> PhysicsConfig:
    base = config.training_config
    if base is None:
        return PhysicsConfig(steps=config.steps, params=params)
    return PhysicsConfig(
        task_name=base.task_name,
        num_envs=base.num_envs,
        seed=base.seed,
        code_url=base.code_url,
        code_ref=base.code_ref,
        steps=config.steps,
        params=params,
    )


def _refuse_repeated_parameters(config: RunConfig) -> None:
    names = [sweep.parameter for sweep in config.sweep_configs or ()]
    for name in names:
        if names.count(name) > 1:
            raise InvalidRequestError(f"{name!r} is swept twice", field="sweep_configs")
