"""How much memory a training took at its peak."""

import resource
import sys

import torch


def peak_host_bytes() -> int:
    """Largest resident size of this process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # kilobytes elsewhere: getrusage(2)


def peak_gpu_bytes(device: str) -> int | None:
    """Memory in use on the device now, or torch's own peak where that was more; None on a CPU.

    A simulator's memory is its own and torch does not see it; what it has it keeps to the end. Other programs
    on the device count too.
    """
    if device == "cpu":
        return None
    free, total = torch.cuda.mem_get_info(device)
    freed_since = torch.cuda.max_memory_reserved(device) - torch.cuda.memory_reserved(device)
    return total - free + freed_since
