"""Text that must stay as it was typed, though YAML and Hydra read a number: `12e4567` is no infinity."""

from collections.abc import Sequence
from typing import Any

from omegaconf import DictConfig, OmegaConf

from canard_hydra.errors import KeyedError

TEXT_KEYS = (
    "name",
    "task.task_name",
    "task.code_url",
    "task.code_ref",
    "checkpoint_url",
    "network.activation",
)
TAGS = "tags"


def text_keys(config: DictConfig) -> list[str]:
    """Keys of this configuration whose values are text: those of the fields, and every tag."""
    tags = config._get_node(TAGS, validate_access=False)
    return [*TEXT_KEYS, *(f"{TAGS}.{tag!s}" for tag in (tags if isinstance(tags, DictConfig) else ()))]


def exact_text(config: DictConfig, key: str, said: Sequence[str]) -> str | None:
    """The text under `key`, None for null or no such key.

    An interpolation may bring an integer (`name=${seed}`), which has one spelling only; a number that was
    written there is refused, because how it was written is lost.

    Args:
        config: with its interpolations; those under `key` must resolve.
        said: the overrides as they were typed.

    Raises:
        KeyedError: the value is no text; says what to quote.
    """
    value = OmegaConf.select(config, key)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and _is_interpolation(config, key):
        return str(value)
    raise KeyedError(_quote_it(key, value, said), key=key)


def _is_interpolation(config: DictConfig, key: str) -> bool:
    section, _, leaf = key.rpartition(".")
    parent = OmegaConf.select(config, section) if section else config
    return isinstance(parent, DictConfig) and OmegaConf.is_interpolation(parent, leaf)


def _quote_it(key: str, value: Any, said: Sequence[str]) -> str:
    kind = {bool: "true or false", int: "the number", float: "the number"}.get(type(value))
    read_as = f"{kind} {value}" if kind and not isinstance(value, bool) else f"{value!r}"
    for override in reversed(said):
        name, equals, text = override.partition("=")
        if equals and name.lstrip("+") == key and "${" in text:
            return f"{key}: {text} is {read_as}; put it into text, as in '{name}={key}-{text}'"
        if equals and name.lstrip("+") == key:
            return f"{key}: {text} would be read as {read_as}; quote this value: '{name}={_quoted(text)}'"
    leaf = key.rpartition(".")[2]
    return f'{key}: was read as {read_as}; quote this value where it is written: {leaf}: "..."'


def _quoted(text: str) -> str:
    """Each value of a sweep in quotes of its own."""
    if any(mark in text for mark in "\"'[]{}()"):
        return '"..."'
    return ",".join(f'"{part.strip()}"' for part in text.split(","))
