"""`mode=plan`: what a submit would do and cost. Nothing is submitted, nothing heavy is loaded."""

from collections.abc import Collection, Sequence

from rich.console import Console

from canard.announce import dollars, duration
from canard.members import REWARD_PREFIX
from canard.models import TrainingConfig
from canard_hydra.columns import following_values, rows_of, sweep_columns
from canard_hydra.cost_cap import refuse_above
from canard_hydra.duplicates import duplicate_lines
from canard_hydra.experiment import Experiment
from canard_hydra.fields import key_of_field
from canard_hydra.reuse import Foreseen, foresee
from canard_hydra.terminal import print_line, print_table, shown, stdout

SHOWN_MEMBERS = 20


def print_plan(experiment: Experiment) -> None:
    """Members with their values and costs, what they share, and the sums."""
    console = stdout()
    foreseen = foresee(experiment)
    print_outline(console, experiment, foreseen)
    to_train = foreseen.to_train(experiment.configs)
    print_line(console, total_line(to_train) if to_train else "Total: nothing is left to train")
    refuse_above(experiment, to_train)
    print_line(console, "Nothing was submitted. To submit, leave out mode=plan.")


def print_outline(console: Console, experiment: Experiment, foreseen: Foreseen) -> None:
    """Members, values and warnings, without the sums."""
    print_line(console, f"Plan of {experiment.name!r}: {headline(experiment)}")
    _print_members(console, experiment, foreseen)
    _print_values(console, experiment)
    for line in (*duplicate_lines(experiment), *foreseen.lines):
        print_line(console, line)


def headline(experiment: Experiment) -> str:
    """`6 members = 2 x 3 (ppo.learning_rate x seed)`"""
    number = len(experiment.configs)
    members = "1 member" if number == 1 else f"{number:,} members"
    sweep = experiment.sweep
    if not sweep.keys:
        return members
    keys = " x ".join(key.lstrip("+") for key in sweep.keys)
    return f"{members} = {sweep} ({keys})"


def total_line(configs: Sequence[TrainingConfig], *, iter_sec: Sequence[float] | None = None) -> str:
    """Sum of the costs, and the time when all members run at once.

    Args:
        iter_sec: measured seconds per iteration of each member, in place of the model's.
    """
    estimates = [
        estimate(config, iter_sec[index] if iter_sec else None) for index, config in enumerate(configs)
    ]
    total = sum(one["total_cost"] for one in estimates)
    longest = max(one["wall_time_hr"] for one in estimates)
    rates = sorted({one["hourly_rate"] for one in estimates})
    rate = " to ".join(dict.fromkeys(f"${one:.2f}" for one in (rates[0], rates[-1])))
    return (
        f"Total: {dollars(total)} on cloud GPUs ({rate} an hour per task),"
        f" {duration(longest * 3600)} with all at once; a machine of your own costs nothing"
    )


def estimate(config: TrainingConfig, iter_sec: float | None = None) -> dict[str, float]:
    """`TrainingConfig.estimate_cost`, or the same from a measured time."""
    if iter_sec is None:
        return config.estimate_cost()
    from canard.cost import estimate_cost

    return estimate_cost(
        num_envs=config.num_envs,
        max_iterations=config.max_iterations,
        gpu_count=config.gpu_count,
        iter_sec=iter_sec,
    )


def _print_members(console: Console, experiment: Experiment, foreseen: Foreseen) -> None:
    columns, number = sweep_columns(experiment), len(experiment.configs)
    values = rows_of(columns, number)
    rows = [
        [str(index), *values[index], *_cost_cells(experiment.configs[index]), foreseen.sources.get(index, "")]
        for index in range(min(number, SHOWN_MEMBERS))
    ]
    headers = ["member", *columns, "time", "cost", "reused from"]
    if not foreseen.sources:
        headers, rows = headers[:-1], [row[:-1] for row in rows]
    print_table(console, headers, rows)
    if number > SHOWN_MEMBERS:
        print_line(console, f"... and {number - SHOWN_MEMBERS:,} members more")


def _print_values(console: Console, experiment: Experiment) -> None:
    for index, line in enumerate(following_values(experiment)[:SHOWN_MEMBERS]):
        print_line(console, f"Member {index}: {line}")
    differing = {name for one in experiment.params for name in one}
    title = "Values" if len(experiment.configs) == 1 else "The same for all"
    print_line(console, f"{title}: {_shared(experiment.configs[0], differing)}")


def _cost_cells(config: TrainingConfig) -> tuple[str, str]:
    costs = config.estimate_cost()
    return duration(costs["task_time_hr"] * 3600), dollars(costs["task_cost"])


def _shared(config: TrainingConfig, differing: Collection[str]) -> str:
    """Every value that is not null, under the key that one would type."""
    fields = config.model_dump(exclude_none=True)
    weights = fields.pop("reward_weights", {})
    fields |= {f"{REWARD_PREFIX}{term}": weight for term, weight in weights.items()}
    told = [f"{key_of_field(name)}={shown(value)}" for name, value in fields.items() if name not in differing]
    return " ".join(told)
