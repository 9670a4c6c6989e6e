"""What Ctrl-C does, stage by stage. Imports next to nothing: it is set up before anything slow is loaded."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130
"""Exit status of a command that was ended by Ctrl-C (128 + SIGINT)."""

NOTHING_SUBMITTED = "Interrupted: nothing was submitted."

Handler = Callable[[int, FrameType | None], object]


def leave_at_once(message: str) -> None:
    """From here on Ctrl-C says `message` and ends the process, whatever it is doing."""

    def leave(_signal: int, _frame: FrameType | None) -> None:
        # os.write: print is not reentrant, and the signal may have come in the middle of one.
        os.write(2, f"\n{message}\n".encode() if message else b"\n")
        os._exit(INTERRUPTED)

    _on_interrupt(leave)


@contextmanager
def raised() -> Iterator[None]:
    """Inside, Ctrl-C raises KeyboardInterrupt, once: the next one leaves at once."""

    def raise_once(_signal: int, _frame: FrameType | None) -> None:
        leave_at_once("")
        raise KeyboardInterrupt

    with _handling(raise_once):
        yield


@contextmanager
def held_back(*, now: str, again: str) -> Iterator[None]:
    """Inside, the first Ctrl-C only says `now`; KeyboardInterrupt is raised at the end of the block.

    For what must not be cut in two. A second Ctrl-C says `again` and leaves at once.
    """
    came = False

    def hold(_signal: int, _frame: FrameType | None) -> None:
        nonlocal came
        came = True
        # Before a word is said: who reads it may press again at once.
        leave_at_once(again)
        os.write(2, f"\n{now}\n".encode())

    with _handling(hold):
        yield
    if came:
        leave_at_once("")
        raise KeyboardInterrupt


@contextmanager
def _handling(handler: Handler) -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    _on_interrupt(handler)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is handler and callable(before):
            _on_interrupt(before)


def _on_interrupt(handler: Handler) -> None:
    # A shell that starts a command with `&` lets it ignore Ctrl-C, which is for the command in front.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, handler)
