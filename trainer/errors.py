"""How a training ends, and with which exit code."""

DONE = 0
WRONG_CONFIG = 2
DIVERGED = 3
PREEMPTED = 75
"""EX_TEMPFAIL of sysexits.h: stopped on request, a later attempt goes on."""
CRASHED = 1
INTERRUPTED = 130
"""Ctrl-C, as a shell reports it."""


class ConfigurationError(Exception):
    """The config or the environment is wrong; trying again cannot help."""


class Preempted(Exception):  # noqa: N818 - no error: the task goes on elsewhere
    """Stopped on request; a training has saved a checkpoint."""


class DivergenceError(Exception):
    """A number of the training is no longer finite; `term` names it."""

    def __init__(self, *, iteration: int, term: str) -> None:
        super().__init__(f"non-finite {term} at iteration {iteration}")
        self.iteration = iteration
        self.term = term
