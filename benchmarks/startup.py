"""How long `--cfg job` takes beside a bare Hydra program with the same configuration files, in turns.

What Python and Hydra need themselves is in both, so the ratio says what ours adds to every command.

    python -m benchmarks.startup
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

OURS = ["-m", "canard_hydra", "--cfg", "job"]
BARE = ["-m", "benchmarks.peers.bare_hydra", "--cfg", "job"]


def main() -> None:
    """Print medians and their ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    pairs = [(seconds(OURS), seconds(BARE)) for _ in range(repeats + 1)][1:]  # the first reads the files
    ours, bare = (statistics.median(column) for column in zip(*pairs, strict=True))
    single = sorted(one / other for one, other in pairs)
    print(f"ours {ours:.2f} s, a bare Hydra program {bare:.2f} s: {ours / bare:.2f} times")
    print(f"single repeats: {single[0]:.2f} to {single[-1]:.2f} times")


def seconds(command: Sequence[str]) -> float:
    """Of one process from its start to its end."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
