"""What a submit tells the person at the terminal."""

from collections.abc import Sequence

from rich.console import Console

from canard.api_url import is_loopback
from canard.models import PhysicsConfig, TrainingConfig
from canard.wire import Reuse, SubmittedRun


def announce(run: SubmittedRun, configs: Sequence[TrainingConfig | PhysicsConfig], *, api_url: str) -> None:
    """Print what became of a submit, the estimated cost of what is trained, and the dashboard URL."""
    lines = [_what_became_of_it(run)]
    reused = run.reuse.by_index
    trainings = [
        config
        for index, config in enumerate(configs)
        if index not in reused and isinstance(config, TrainingConfig)
    ]
    if trainings:
        lines.append(f"Estimated cost: {cost_line(trainings, on_this_machine=is_loopback(api_url))}")
    if run.reuse.note is not None:
        lines.append(f"Note: {run.reuse.note}")
    lines.append(f"Dashboard: {run.dashboard_url}")
    console = Console()
    for line in lines:
        # As it is: names may hold brackets, and a URL must not be broken over two lines.
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _what_became_of_it(run: SubmittedRun) -> str:
    tasks = counted(run.num_tasks, "task")
    if run.submitted_as == "active":
        return f"Came back to {run.slug} ({run.name}), which is the same and goes on: {tasks}"
    if run.submitted_as == "repeated":
        return f"Came back to {run.slug} ({run.name}), which this submit made before: {tasks}"
    parts = reuse_parts(run.reuse, run.num_tasks)
    return f"Submitted {run.slug} ({run.name}): {tasks}" + (f" ({', '.join(parts)})" if parts else "")


def reuse_parts(reuse: Reuse, num_tasks: int) -> list[str]:
    """`4 trained before`, `1 being trained in run_xxxxxxxx`, `2 to train`; nothing when all are to train."""
    if not reuse.members:
        return []
    parts = [f"{len(reuse.done):,} trained before"] if reuse.done else []
    if reuse.following:
        runs = dict.fromkeys(member.source.partition("/")[0] for member in reuse.following)
        where = next(iter(runs)) if len(runs) == 1 else f"{len(runs)} other runs"
        parts.append(f"{len(reuse.following):,} being trained in {where}")
    return [*parts, f"{num_tasks - len(reuse.members):,} to train"]


def cost_line(configs: Sequence[TrainingConfig], *, on_this_machine: bool) -> str:
    """`$1.23 (4 tasks, about 1.2 h with all at once)`, and that a machine of one's own costs nothing."""
    estimates = [config.estimate_cost() for config in configs]
    total = sum(estimate["total_cost"] for estimate in estimates)
    longest_hr = max(estimate["wall_time_hr"] for estimate in estimates)
    told = (
        f"{dollars(total)} ({counted(len(configs), 'task')}, about {duration(longest_hr * 3600)} all at once)"
    )
    return f"{told} on cloud GPUs; on this machine it costs nothing" if on_this_machine else told


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 0.01 else "less than $0.01"


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3.4 h`, `2.5 days`; never less than a second."""
    seconds = max(seconds, 1.0)
    for limit, size, unit in ((90, 1, "s"), (90 * 60, 60, "min"), (48 * 3600, 3600, "h")):
        if seconds < limit:
            amount = seconds / size
            return f"{amount:.1f} {unit}" if unit == "h" else f"{amount:.0f} {unit}"
    return f"{seconds / 86400:.1f} days"
