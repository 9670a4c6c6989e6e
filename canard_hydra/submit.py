"""`mode=submit`: one run, one request; then wait for it with a bar, and end with a table."""

from typing import TYPE_CHECKING

from canard_hydra import interrupts
from canard_hydra.errors import ExperimentError
from canard_hydra.experiment import Experiment, Metric
from canard_hydra.outcome import Outcome
from canard_hydra.results import print_results
from canard_hydra.terminal import print_line, stdout

if TYPE_CHECKING:
    from canard.client import Client
    from canard.models import Task
    from canard.run_handle import RunHandle


class Detached(KeyboardInterrupt):
    """Ctrl-C after the submit; its text says how to come back to the run."""


def submit(experiment: Experiment) -> list[Outcome]:
    """Submit, and when the command is to stay, wait and print the results.

    Raises:
        CanardError: it was not accepted.
        Detached: Ctrl-C; the run goes on.
    """
    with interrupts.raised():
        client = _connect(experiment)
    with client:
        handle = _submitted(client, experiment)
        try:
            with interrupts.raised():
                return _results(handle, experiment, api_url=client.api_url)
        except KeyboardInterrupt:
            raise Detached(handle.goes_on) from None


def _connect(experiment: Experiment) -> "Client":
    from canard.client import Client

    platform = experiment.control.platform
    if platform.kind == "local" and platform.api_url is None:
        from canard.local_platform import ensure_running

        here = ensure_running()
        return Client(api_url=here.url, api_key=here.api_key, dashboard_url=platform.dashboard_url)
    if platform.api_url is None:
        raise ExperimentError(
            "platform.api_url: is null, so there is no platform to submit to;"
            " say platform.api_url=https://..."
        )
    return Client(api_url=platform.api_url, dashboard_url=platform.dashboard_url)


def _submitted(client: "Client", experiment: Experiment) -> "RunHandle":
    held_back = interrupts.held_back(
        now="Interrupted: waiting for the platform's answer to the submit (Ctrl-C again leaves).",
        again="Interrupted while submitting: the run may exist; look with: canard runs",
    )
    handle: RunHandle | None = None
    try:
        with held_back:
            handle = client.submit_run(experiment.name, experiment.run)
    except KeyboardInterrupt:
        if handle is None:
            raise
        raise Detached(handle.goes_on) from None
    return handle


def _results(handle: "RunHandle", experiment: Experiment, *, api_url: str) -> list[Outcome]:
    from canard.errors import RunFailedError

    console = stdout()
    if not experiment.wait:
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
