"""Overrides that set one plain value, read without a parser where the text leaves no doubt."""

import re
from dataclasses import dataclass
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import OverrideType, ValueType

from canard_hydra.fields import FIELD_OF_KEY, RECOMMENDED, REWARD_KEY

KEY = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
INT = re.compile(r"-?(?:0|[1-9][0-9]*)")
FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?")
NAME = "name"


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """`key=value` with a key that is one field, and a value that depends on nothing else."""

    key: str
    value: Any


class LeafReader:
    """Reads each text once; the parser takes a millisecond, and a sweep of seeds has thousands."""

    def __init__(self) -> None:
        self._parser = OverridesParser.create()
        self._read: dict[str, Leaf | None] = {}

    def read(self, text: str) -> Leaf | None:
        """None where the override is more than one plain value under a field's key."""
        if text not in self._read:
            self._read[text] = self._leaf(text)
        return self._read[text]

    def _leaf(self, text: str) -> Leaf | None:
        key, equals, value = text.partition("=")
        if not equals or not KEY.fullmatch(key) or not settable(key):
            return None
        if INT.fullmatch(value):
            return Leaf(key=key, value=int(value))
        if FLOAT.fullmatch(value):
            return Leaf(key=key, value=float(value))
        parsed = self._parser.parse_override(text)
        if parsed.type is not OverrideType.CHANGE or parsed.value_type is not ValueType.ELEMENT:
            return None
        return Leaf(key=key, value=parsed.value()) if _is_plain(parsed.value()) else None


def settable(key: str) -> bool:
    """Whether the key is one field of a member, with a place of its own."""
    if key.startswith(REWARD_KEY):
        return "." not in key.removeprefix(REWARD_KEY)
    if key in (f"task.{name}" for name in RECOMMENDED):
        return True
    return key == NAME or (key in FIELD_OF_KEY and key != "task.reward_weights")


def _is_plain(value: Any) -> bool:
    """No mapping, nothing missing, no interpolation."""
    if isinstance(value, list):
        return all(not isinstance(item, list) and _is_plain(item) for item in value)
    if isinstance(value, str):
        return "${" not in value and value != "???"
    return value is None or isinstance(value, bool | int | float)
