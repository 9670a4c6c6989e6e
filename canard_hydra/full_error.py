"""HYDRA_FULL_ERROR: Hydra's switch that lets exceptions through to us, and the user's wish to see where."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

VARIABLE = "HYDRA_FULL_ERROR"

_said_by_user: ContextVar[str | None] = ContextVar("said_by_user", default=None)


def is_wanted() -> bool:
    """Whether the user asked for tracebacks."""
    return os.environ.get(VARIABLE) == "1"


@contextmanager
def hydra_raises() -> Iterator[None]:
    """Inside, Hydra raises its exceptions instead of printing them in its own way."""
    token = _said_by_user.set(os.environ.get(VARIABLE))
    try:
        with _set_to("1"):
            yield
    finally:
        _said_by_user.reset(token)


@contextmanager
def as_the_user_said() -> Iterator[None]:
    """Inside, the variable is what the user made it: programs that are started there inherit it."""
    with _set_to(_said_by_user.get()):
        yield


@contextmanager
def _set_to(value: str | None) -> Iterator[None]:
    before = os.environ.get(VARIABLE)
    _put(value)
    try:
        yield
    finally:
        _put(before)


def _put(value: str | None) -> None:
    if value is None:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = value
