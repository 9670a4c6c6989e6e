"""Pydantic's complaints in one line each: the field, what is wrong, what was given."""

from typing import Any

from pydantic import ValidationError

from canard.errors import InvalidRequestError

SHOWN_ERRORS = 3
SHOWN_INPUT_CHARS = 60


def invalid_request(
    error: ValidationError, *, names: dict[str, str] | None = None, prefix: str = ""
) -> InvalidRequestError:
    """The same complaint as an InvalidRequestError.

    Args:
        names: what the caller's arguments are called, where that is not the model's name of the field.
        prefix: path of the model within what the user wrote, such as `training_config`.
    """
    complaints = error.errors()
    fields = [_field(one["loc"], names or {}, prefix) for one in complaints]
    told = [
        _sentence(field, one)
        for field, one in zip(fields[:SHOWN_ERRORS], complaints[:SHOWN_ERRORS], strict=True)
    ]
    more = len(complaints) - len(told)
    return InvalidRequestError(
        "; ".join(told) + (f"; and {more} more" if more else ""), field=fields[0] or None
    )


def _field(loc: tuple[int | str, ...], names: dict[str, str], prefix: str) -> str:
    parts = [names.get(str(part), str(part)) for part in loc]
    return ".".join([prefix, *parts] if prefix else parts)


def _sentence(field: str, complaint: Any) -> str:
    message = complaint["msg"].replace("Input should", "should", 1)
    given = complaint["input"]
    if complaint["type"] in ("missing", "extra_forbidden") or "not " in message:
        shown = ""
    else:
        shown = f", not {_shortly(given)}"
    if complaint["type"] == "string_type" and isinstance(given, int | float):
        shown += f"; quote it: {str(given)!r}"
    return f"{field}: {message}{shown}" if field else f"{message}{shown}"


def _shortly(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_INPUT_CHARS else f"{text[:SHOWN_INPUT_CHARS]}..."
