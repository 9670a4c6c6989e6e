"""How pages say values: times with their zone, numbers short, null told from an empty text."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

NOT_YET = "–"  # noqa: RUF001 - a dash is what a table shows for nothing


def moment(value: datetime | None) -> str:
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if value else NOT_YET


def number(value: float | None) -> str:
    return f"{value:.4g}" if value is not None else NOT_YET


def swept_value(params: Mapping[str, Any], name: str) -> str:
    """As JSON, so that null, "null" and "" look different; a dash where the task does not say it."""
    return json.dumps(params[name], ensure_ascii=False) if name in params else NOT_YET


def size(value: int) -> str:
    amount = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


FILTERS: Mapping[str, Callable[..., str]] = {
    "moment": moment,
    "number": number,
    "swept_value": swept_value,
    "size": size,
    "first_line": first_line,
}
