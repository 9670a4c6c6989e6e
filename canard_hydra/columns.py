"""What sets the members apart, as columns of a table."""

from collections.abc import Sequence

from canard_hydra.experiment import Experiment
from canard_hydra.fields import key_of_field
from canard_hydra.terminal import shown

MOST_COLUMNS = 6

Columns = dict[str, list[str]]
"""Cells of all members by header."""


def sweep_columns(experiment: Experiment) -> Columns:
    """The swept keys with what was typed; then the values that follow from them, if they are few."""
    columns = _as_typed(experiment)
    following = _following(experiment, columns)
    return columns | following if len(columns) + len(following) <= MOST_COLUMNS else columns


def following_values(experiment: Experiment) -> list[str]:
    """A line per member with the values that follow from the swept ones, when they are no columns."""
    columns = _as_typed(experiment)
    following = _following(experiment, columns)
    if len(columns) + len(following) <= MOST_COLUMNS:
        return []
    return [
        " ".join(f"{key}={cells[index]}" for key, cells in following.items() if cells[index] != "null")
        for index in range(len(experiment.configs))
    ]


def rows_of(columns: Columns, number: int) -> list[Sequence[str]]:
    return [[cells[index] for cells in columns.values()] for index in range(number)]


def _as_typed(experiment: Experiment) -> Columns:
    overrides = [dict(_split(text) for text in one) for one in experiment.swept]
    keys = dict.fromkeys(key for one in overrides for key in one)
    return {key: [one.get(key, "") for one in overrides] for key in keys}


def _split(override: str) -> tuple[str, str]:
    key, _, value = override.partition("=")
    return key.lstrip("+"), value


def _following(experiment: Experiment, columns: Columns) -> Columns:
    names = dict.fromkeys(name for one in experiment.params for name in one)
    return {
        key_of_field(name): [shown(one[name]) if name in one else "" for one in experiment.params]
        for name in names
        if key_of_field(name) not in columns
    }
