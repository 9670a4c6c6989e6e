"""SIGTERM: a machine is wanted back, so finish the iteration, save, and leave."""

import signal
from types import FrameType


class StopRequest:
    """Remembers that somebody asked to stop. Install it after a simulator has installed its own handlers."""

    def __init__(self) -> None:
        self.requested = False

    def install(self) -> None:
        signal.signal(signal.SIGTERM, self._remember)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
