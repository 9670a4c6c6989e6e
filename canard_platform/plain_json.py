"""Free-form JSON that both databases can keep: refused where a person can put it right, mended where not.

Neither takes NaN and infinities (JSON has none), NUL (PostgreSQL's text has none) or half a surrogate pair
(UTF-8 has none).
"""

import math
import re
from typing import Any

from canard.errors import InvalidRequestError

MOST_DEPTH = 32
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


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
            refuse_unstorable(inner, f"{path}.{name}" if path else name, depth + 1)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            refuse_unstorable(inner, f"{path}.{index}", depth + 1)


def _refuse_text(value: str, path: str) -> None:
    if storable_text(value) != value:
        raise InvalidRequestError(f"{path}: text with NUL or half a surrogate pair", field=path)


def storable_object(said: dict[str, Any]) -> dict[str, Any]:
    """The same with null for numbers that JSON cannot say, their keys under `nonfinite`, and clean text."""
    bad = [name for name, value in said.items() if isinstance(value, float) and not math.isfinite(value)]
    clean: dict[str, Any] = _storable(said)
    if bad:
        known = clean.get("nonfinite")
        clean["nonfinite"] = sorted({*(known if isinstance(known, list) else ()), *bad})
    return clean


def storable_text(text: str) -> str:
    """With the replacement character for what cannot be kept."""
    return _UNSTORABLE.sub("\ufffd", text)


def _storable(value: Any, depth: int = 0) -> Any:
    if depth > MOST_DEPTH:
        return None
    if isinstance(value, dict):
        return {storable_text(name): _storable(inner, depth + 1) for name, inner in value.items()}
    if isinstance(value, list):
        return [_storable(inner, depth + 1) for inner in value]
    if isinstance(value, str):
        return storable_text(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
