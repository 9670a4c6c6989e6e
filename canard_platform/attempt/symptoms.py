"""Well-known ends of programs, recognised by their words and said plainly."""

import re
import signal

_SYMPTOMS = (
    (
        re.compile(
            r"CUDA out of memory|OutOfMemoryError: CUDA|CUDA error: out of memory|PhysX.*out of memory"
        ),
        "the GPU ran out of memory: lower num_envs (it is per GPU) or use a larger GPU",
    ),
    (
        re.compile(r"No space left on device|Errno 28|Disk quota exceeded"),
        "the disk of the worker is full: free some space there",
    ),
    (
        re.compile(r"\bMemoryError\b|DefaultCPUAllocator: can't allocate memory|Cannot allocate memory"),
        "the worker ran out of memory: lower num_envs",
    ),
)


def recognised(text: str) -> str | None:
    """What the words are known to mean."""
    return next((meaning for pattern, meaning in _SYMPTOMS if pattern.search(text)), None)


def ended(exit_code: int) -> str:
    """How a process ended, in words."""
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    hint = " (often: the machine ran out of memory)" if exit_code == -signal.SIGKILL else ""
    return f"was ended by {name}{hint}"
