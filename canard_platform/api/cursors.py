"""Keyset pages: a cursor is the sort key of the last item seen, so that new items shift nothing."""

import base64
import binascii
import json
from datetime import datetime
from typing import Annotated, Any

from fastapi import Query

from canard.errors import InvalidRequestError

Limit = Annotated[int, Query(ge=1, le=1000)]
Cursor = Annotated[str | None, Query(max_length=200)]

MOST_ID = 2**63 - 1


def after_time_and_id(moment: datetime, number: int) -> str:
    return _encode([moment.isoformat(), number])


def after_id(number: int) -> str:
    return _encode([number])


def after_two(first: int, second: int) -> str:
    return _encode([first, second])


def read_time_and_id(cursor: str) -> tuple[datetime, int]:
    try:
        said, number = _decode(cursor)
        moment = datetime.fromisoformat(said)
    except (ValueError, TypeError):
        raise _bad() from None
    if moment.tzinfo is None or not _is_id(number):
        raise _bad()
    return moment, number


def read_id(cursor: str) -> int:
    [number] = _numbers(cursor, 1)
    return number


def read_two(cursor: str) -> tuple[int, int]:
    first, second = _numbers(cursor, 2)
    return first, second


def _numbers(cursor: str, count: int) -> list[int]:
    values = _decode(cursor)
    if len(values) != count or not all(_is_id(value) for value in values):
        raise _bad()
    return values


def _encode(values: list[object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def _decode(cursor: str) -> list[Any]:
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        values = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, binascii.Error, RecursionError):
        raise _bad() from None
    if not isinstance(values, list):
        raise _bad()
    return values


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_ID


def _bad() -> InvalidRequestError:
    return InvalidRequestError(
        "cursor: not one that this API gave", field="cursor", hint="take next_cursor of the page before"
    )
