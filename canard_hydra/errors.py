"""What is wrong with a composed experiment, told to the person who composed it."""

from canard.errors import CanardError


class ExperimentError(CanardError):
    """The experiment cannot be submitted as it was composed; nothing was sent."""


class UsageError(ExperimentError):
    """The command line asks for something that cannot be."""


class KeyedError(ExperimentError):
    """Something is wrong with one key; where it was written is worth saying."""

    def __init__(self, message: str, *, key: str) -> None:
        super().__init__(message)
        self.key = key


class MissingValueError(ExperimentError):
    """Keys that are ??? in a file: whoever composes has to say them."""

    def __init__(self, message: str, *, keys: tuple[str, ...]) -> None:
        super().__init__(message)
        self.keys = keys
