"""Which GPUs this machine has, as nvidia-smi says it."""

import os
import shutil
import subprocess

TIMEOUT_S = 20


def visible_gpus() -> tuple[str, ...]:
    """Identifiers for CUDA_VISIBLE_DEVICES, one a GPU; empty without NVIDIA's driver.

    A CUDA_VISIBLE_DEVICES of our own environment is the limit that somebody set for us: only its devices
    are taken.
    """
    found = _all_gpus()
    limit = os.environ.get("CUDA_VISIBLE_DEVICES")
    if limit is None or not found:
        return found
    return tuple(device for part in limit.split(",") if (device := part.strip()) and device != "-1")


def _all_gpus() -> tuple[str, ...]:
    if shutil.which("nvidia-smi") is None:
        return ()
    try:
        answer = subprocess.run(
            ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ()  # nvidia-smi without a driver or a device: a CPU machine
    return tuple(line.strip() for line in answer.stdout.splitlines() if line.strip())
