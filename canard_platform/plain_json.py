"""What a free-form part of a request may hold: JSON that both databases can keep."""

import math
from typing import Any

from canard.errors import InvalidRequestError

MOST_DEPTH = 32


def refuse_unstorable(value: Any, path: str, depth: int = 0) -> None:
    """Raises InvalidRequestError for NaN, infinities, NUL and lone surrogates, naming where."""
    if depth > MOST_DEPTH:
        raise InvalidRequestError(f"{path}: nested more than {MOST_DEPTH} levels deep", field=path)
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidRequestError(f"{path}: must be a finite number, not {value}", field=path)
    if isinstance(value, str):
        _refuse_text(value, path)
    elif isinstance(value, dict):
        for name, inner in value.items():
            _refuse_text(name, path)
            refuse_unstorable(inner, f"{path}.{name}", depth + 1)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            refuse_unstorable(inner, f"{path}.{index}", depth + 1)


def _refuse_text(value: str, path: str) -> None:
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidRequestError(f"{path}: text with NUL or half a surrogate pair", field=path)
