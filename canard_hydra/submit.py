"""`mode=submit`: one run, one request; then wait for it with a bar, and end with a table."""

from typing import TYPE_CHECKING

from canard_hydra import interrupts
from canard_hydra.cost_cap import exceeds, refuse_above
from canard_hydra.duplicates import duplicate_lines
from canard_hydra.experiment import Experiment, Metric
from canard_hydra.outcome import Outcome
from canard_hydra.plan import print_outline
from canard_hydra.platforms import connect
from canard_hydra.results import print_results
from canard_hydra.reuse import Foreseen, ask
from canard_hydra.submission import keep_answer, prepare
from canard_hydra.terminal import print_line, stdout

if TYPE_CHECKING:
    from canard.client import Client
    from canard.models import Task
    from canard.run_handle import RunHandle

OUTLINED_FROM = 50
"""So many members are shown before they are sent, while Ctrl-C still helps."""


class Detached(KeyboardInterrupt):
    """Ctrl-C after the submit; its text says how to come back to the run."""


def submit(experiment: Experiment) -> list[Outcome]:
    """Submit, and when the command is to stay, wait and print the results.

    Raises:
        ExperimentError: it is estimated to cost more than max_cost.
        CanardError: it was not accepted.
        Detached: Ctrl-C; the run goes on.
    """
    with interrupts.raised():
        if not experiment.control.reuse:
            refuse_above(experiment, experiment.configs)
        client = connect(experiment.control.platform)
    with client:
        with interrupts.raised():
            _refuse_costs(client, experiment)
            _outline(experiment)
        handle = _submitted(client, experiment)
        try:
            with interrupts.raised():
                return _results(handle, experiment, api_url=client.api_url)
        except KeyboardInterrupt:
            raise Detached(handle.goes_on) from None


def _outline(experiment: Experiment) -> None:
    if len(experiment.configs) >= OUTLINED_FROM:
        print_outline(stdout(), experiment, Foreseen())
        return
    for line in duplicate_lines(experiment):
        print_line(stdout(), line)


def _refuse_costs(client: "Client", experiment: Experiment) -> None:
    """What was trained before costs nothing, so the platform is asked when all of it together is too much."""
    if exceeds(experiment, experiment.configs):
        refuse_above(experiment, ask(client, experiment).to_train(experiment.configs))


def _submitted(client: "Client", experiment: Experiment) -> "RunHandle":
    held_back = interrupts.held_back(
        now="Interrupted: waiting for the platform's answer to the submit (Ctrl-C again leaves).",
        again="Interrupted while submitting: the run may exist; look with: canard runs",
    )
    handle: RunHandle | None = None
    try:
        with held_back:
            submission = prepare(experiment, api_url=client.api_url)
            handle = client.submit_run(
                experiment.name, experiment.run, idempotency_key=submission.idempotency_key
            )
            keep_answer(experiment, submission, handle.run)
    except KeyboardInterrupt:
        if handle is None:
            raise
        raise Detached(handle.goes_on) from None
    return handle


def _results(handle: "RunHandle", experiment: Experiment, *, api_url: str) -> list[Outcome]:
    from canard.errors import RunFailedError

    console = stdout()
    if not experiment.wait and not handle.run.is_terminal:
        print_line(console, handle.goes_on)
        return [Outcome() for _ in experiment.configs]
    error = None
    try:
        handle.wait_for_completion(show_progress=True)
    except RunFailedError as failure:
        error = str(failure)
    tasks = sorted(handle.get_tasks(), key=lambda task: task.index)
    print_results(console, handle, tasks, experiment, api_url=api_url)
    return [_outcome(task, error, experiment.control.metric) for task in tasks]


def _outcome(task: "Task", error: str | None, metric: Metric | list[Metric]) -> Outcome:
    if task.status != "completed":
        reason = task.error_message or task.status
        return Outcome(
            error=error or f"task {task.index} {task.status}", reason=f"task {task.index}: {reason}"
        )
    names = [metric] if isinstance(metric, str) else metric
    values: list[float] = []
    for name in names:
        value = getattr(task.training, name, None)
        if value is None:
            return Outcome(reason=f"task {task.index}: completed without a {name}; did no episode end?")
        values.append(value)
    return Outcome(objective=values[0] if isinstance(metric, str) else values)
