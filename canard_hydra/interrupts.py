"""What Ctrl-C and SIGTERM do, stage by stage. Imports next to nothing: it is set up before anything slow."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

NOTHING_SUBMITTED = "Interrupted: nothing was submitted."
SIGNALS = (signal.SIGINT, signal.SIGTERM)

Handler = Callable[[int, FrameType | None], object]


class Interrupted(KeyboardInterrupt):
    """One of the signals came."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.status = exit_status(number)


def exit_status(number: int) -> int:
    """Of a process that was ended by this signal: 130 after Ctrl-C, as shells have it."""
    return 128 + number


def status_of(interrupt: KeyboardInterrupt) -> int:
    """By the signal that it began with."""
    error: BaseException | None = interrupt
    while error is not None:
        if isinstance(error, Interrupted):
            return error.status
        error = error.__context__
    return exit_status(signal.SIGINT)


def leave_at_once(message: str) -> None:
    """From here on a signal says `message` and ends the process, whatever it is doing."""

    def leave(number: int, _frame: FrameType | None) -> None:
        # os.write: print is not reentrant, and the signal may have come in the middle of one.
        os.write(2, f"\n{message}\n".encode() if message else b"\n")
        os._exit(exit_status(number))

    for number in SIGNALS:
        _on(number, leave)


@contextmanager
def raised() -> Iterator[None]:
    """Inside, a signal raises Interrupted, once: the next one leaves at once."""

    def raise_once(number: int, _frame: FrameType | None) -> None:
        leave_at_once("")
        raise Interrupted(number)

    with _handling(raise_once):
        yield


@contextmanager
def held_back(*, now: str, again: str) -> Iterator[None]:
    """Inside, the first signal only says `now`; Interrupted is raised at the end of the block.

    For what must not be cut in two. A second one says `again` and leaves at once.
    """
    came: int | None = None

    def hold(number: int, _frame: FrameType | None) -> None:
        nonlocal came
        came = number
        # Before a word is said: who reads it may send the next at once.
        leave_at_once(again)
        os.write(2, f"\n{now}\n".encode())

    with _handling(hold):
        yield
    if came is not None:
        leave_at_once("")
        raise Interrupted(came)


@contextmanager
def _handling(handler: Handler) -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        _on(number, handler)
    try:
        yield
    finally:
        for number, earlier in before.items():
            if signal.getsignal(number) is handler and earlier is not None:
                signal.signal(number, earlier)


def _on(number: int, handler: Handler) -> None:
    # A shell that starts a command with `&` lets it ignore Ctrl-C, which is for the command in front.
    if signal.getsignal(number) is not signal.SIG_IGN:
        signal.signal(number, handler)
