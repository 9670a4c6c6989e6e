"""A multirun, from the command to the run that the platform has committed, beside Hydra's own path.

Ours is the whole command, `python -m canard_hydra -m ... wait=false`, with a platform that is up: every
member composed, validated and committed in one run. Hydra's is the same configuration with its BasicSweeper
and a launcher that does nothing, so that only its own validation of each member is measured; above
`--most-by-hydra` members it is extrapolated from the largest that was run, which the table says. Each is a
process of its own, in turns.

    python -m benchmarks.sweep
    python -m benchmarks.sweep --members 1 100 --repeats 3
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from canard.client import Client
from canard.local_platform import ensure_running, stop

TASK = "cartpole"
SECONDS = attrgetter("seconds")


@dataclass(frozen=True)
class Measured:
    """One command."""

    seconds: float
    peak_mb: float
    """Of its memory; the platform's is not in it."""


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--members", type=int, nargs="+", default=[1, 100, 1_000, 10_000])
    parser.add_argument("--most-by-hydra", type=int, default=1_000)
    parser.add_argument("--repeats", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, platform(Path(folder)) as api_url:
        print("| members | ours | peak | Hydra's own path | peak | ratio |")
        print("|---|---|---|---|---|---|")
        per_member = 0.0
        for members in sorted(arguments.members):
            ours = min((by_us(members, api_url, Path(folder)) for _ in range(arguments.repeats)), key=SECONDS)
            told = f"| {members:,} | {ours.seconds:.1f} s | {ours.peak_mb:.0f} MB "
            if members <= arguments.most_by_hydra:
                theirs = min((by_hydra(members, Path(folder)) for _ in range(arguments.repeats)), key=SECONDS)
                per_member = theirs.seconds / members
                ratio = theirs.seconds / ours.seconds
                told += f"| {theirs.seconds:.1f} s | {theirs.peak_mb:.0f} MB | {ratio:.1f} |"
            else:
                expected = per_member * members
                told += f"| {expected:.0f} s, extrapolated | | {expected / ours.seconds:.0f} |"
            print(told, flush=True)


def by_us(members: int, api_url: str, folder: Path) -> Measured:
    """The whole command; it is checked that the run with all its tasks is there."""
    name = f"{members}-{time.monotonic_ns()}"
    chosen = [
        "platform=self_hosted",
        f"platform.api_url={api_url}",
        "wait=false",
        "reuse=false",
        f"name={name}",
    ]
    # More GPUs than there are: all tasks stay queued, so that none trains while the next is measured.
    measured = timed(["-m", "canard_hydra", "-m", *chosen, "gpu_count=8", *grid(members)], folder)
    with Client(api_url=api_url) as client:
        [run] = [run for run in client.list_runs() if run.name == name]
        tasks = len(client.get_run_tasks(run.slug))
        if tasks != members:
            raise SystemExit(f"{run.slug} has {tasks} tasks, not {members}")
        client.cancel_run(run.slug)
    return measured


def by_hydra(members: int, folder: Path) -> Measured:
    """The same configuration and grid."""
    return timed(["-m", "benchmarks.peers.bare_hydra", "-m", "gpu_count=8", *grid(members)], folder)


def grid(members: int) -> list[str]:
    """Seeds, and from a thousand members on a hundred learning rates too."""
    rates = 100 if members >= 1_000 else 1
    values = ",".join(f"{rate}e-5" for rate in range(1, rates + 1))
    return [f"task={TASK}", f"seed=range({members // rates})", f"ppo.learning_rate={values}"]


def timed(command: Sequence[str], folder: Path) -> Measured:
    """One process from its start to its end."""
    where = {"PYTHONPATH": str(Path(__file__).parents[1])}
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *command], cwd=folder, env={**os.environ, **where}, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    taken = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Measured(seconds=taken, peak_mb=used.ru_maxrss / 1024)


@contextmanager
def platform(folder: Path) -> Iterator[str]:
    """A platform of its own on this machine, up when it is yielded."""
    home = folder / "home"
    os.environ["CANARD_HOME"] = str(home)
    try:
        yield ensure_running(home).url
    finally:
        stop(home)


if __name__ == "__main__":
    main()
