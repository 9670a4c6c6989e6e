"""From the overrides of a multirun to those of each member: products, pairs, repeats."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hydra.core.override_parser.types import Override

from canard_hydra.errors import ExperimentError

MOST_MEMBERS = 100_000
SEED = "seed"


@dataclass(frozen=True, kw_only=True)
class Axis:
    """Keys that take their values together, and the overrides of each point."""

    keys: tuple[str, ...]
    points: tuple[tuple[str, ...], ...]


def expand(
    overrides: Sequence[Override], *, zipped: Sequence[Sequence[str]] = (), repeats: int = 1, seed: int = 0
) -> list[list[str]]:
    """The overrides of every member, in Hydra's order: the last swept key varies fastest.

    Args:
        overrides: of the command line and of a sweep's file; the last of a key counts.
        zipped: groups of keys that move together.
        repeats: so many seeds per combination.
        seed: the first of them, unless an override says it.

    Raises:
        ExperimentError: keys cannot be paired or repeated as asked, or there are too many members.
    """
    axes = [Axis(keys=(key,), points=points) for key, points in _points(overrides).items()]
    for group in zipped:
        axes = _paired(axes, group)
    if repeats > 1:
        axes = _repeated(axes, repeats, seed)
    number = math.prod(len(axis.points) for axis in axes)
    if number > MOST_MEMBERS:
        sizes = " x ".join(f"{len(axis.points):,}" for axis in axes if len(axis.points) > 1)
        raise ExperimentError(f"{number:,} members = {sizes}: a run has {MOST_MEMBERS:,} at most")
    return [[text for point in points for text in point] for points in _product(axes)]


def _product(axes: Sequence[Axis]) -> Iterator[tuple[tuple[str, ...], ...]]:
    return itertools.product(*(axis.points for axis in axes))


def _points(overrides: Sequence[Override]) -> dict[str, tuple[tuple[str, ...], ...]]:
    points: dict[str, tuple[tuple[str, ...], ...]] = {}
    for override in overrides:
        key = override.get_key_element()
        if not override.is_sweep_override():
            texts = [override.get_value_element_as_str()]
        elif override.is_discrete_sweep():
            texts = list(override.sweep_string_iterator())
        else:
            raise ExperimentError(
                f"{override.input_line}: an interval has no list of values; say them, as in {key}=1,2, or"
                " choose a sweeper that searches, as hydra/sweeper=optuna"
            )
        if not texts:
            raise ExperimentError(f"{override.input_line}: has no values, so there would be no member")
        points[key] = tuple((f"{key}={text}",) for text in texts)
    return points


def _paired(axes: Sequence[Axis], group: Sequence[str]) -> list[Axis]:
    """The same axes with those of the group as one, at the place of the first of them."""
    members = [_axis_of(axes, key) for key in group]
    sizes = [len(axis.points) for axis in members]
    if len(set(sizes)) > 1:
        told = ", ".join(f"{key} has {size}" for key, size in zip(group, sizes, strict=True))
        raise ExperimentError(f"zip: keys that move together need as many values each, and {told}")
    members = [axis for axis in axes if axis in members]  # in the order of the overrides
    pair = Axis(
        keys=tuple(key for axis in members for key in axis.keys),
        points=tuple(
            tuple(text for point in points for text in point)
            for points in zip(*(axis.points for axis in members), strict=True)
        ),
    )
    rest = [axis for axis in axes if axis not in members or axis is members[0]]
    return [pair if axis is members[0] else axis for axis in rest]


def _axis_of(axes: Sequence[Axis], key: str) -> Axis:
    for axis in axes:
        if any(one.lstrip("+") == key for one in axis.keys):
            if len(axis.keys) > 1:
                raise ExperimentError(f"zip: {key} is in two groups")
            return axis
    raise ExperimentError(f"zip: {key} has no values to pair; say them, as in {key}=1,2")


def _repeated(axes: Sequence[Axis], repeats: int, seed: int) -> list[Axis]:
    said = [axis for axis in axes if any(key.lstrip("+") == SEED for key in axis.keys)]
    for axis in said:
        if len(axis.points) > 1:
            raise ExperimentError("repeats: seed is swept already; say either seed=... or repeats=...")
        seed = _first_seed(axis.points[0][0])
    key = said[0].keys[0] if said else SEED
    points = tuple((f"{key}={number}",) for number in range(seed, seed + repeats))
    return [*(axis for axis in axes if axis not in said), Axis(keys=(key,), points=points)]


def _first_seed(override: str) -> int:
    text = override.partition("=")[2]
    if text == "null":
        return 0
    if not text.isdecimal():
        raise ExperimentError(f"repeats: counts on from the seed, and {override} is no whole number")
    return int(text)
