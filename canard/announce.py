"""What a submit tells the person at the terminal."""

from collections.abc import Sequence

from rich.console import Console

from canard.api_url import is_loopback
from canard.models import PhysicsConfig, Run, TrainingConfig


def announce(run: Run, configs: Sequence[TrainingConfig | PhysicsConfig], *, api_url: str) -> None:
    """Print the estimated cost and the dashboard URL of a run that was just submitted."""
    trainings = [config for config in configs if isinstance(config, TrainingConfig)]
    lines = [f"Submitted {run.slug} ({run.name}): {counted(run.num_tasks, 'task')}"]
    if trainings:
        lines.append(f"Estimated cost: {cost_line(trainings, on_this_machine=is_loopback(api_url))}")
    lines.append(f"Dashboard: {run.dashboard_url}")
    console = Console()
    for line in lines:
        # As it is: names may hold brackets, and a URL must not be broken over two lines.
        console.print(line, markup=False, highlight=False, soft_wrap=True)


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
