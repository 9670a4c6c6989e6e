"""`canard runs`, `show`, `watch`, `logs`, `cancel`, `open`: the same on every platform."""

import json
import sys
import webbrowser
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from canard.errors import InvalidRequestError, PlatformError

if TYPE_CHECKING:
    from canard.client import Client
    from canard.models import Run, Task

API_URL_VARIABLE = "CANARD_API_URL"

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def api_url_option(command: CommandT) -> CommandT:
    return click.option(
        "--api-url", envvar=API_URL_VARIABLE, help=f"Platform; else ${API_URL_VARIABLE}, else the one here."
    )(command)


def json_option(command: CommandT) -> CommandT:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def connect(api_url: str | None) -> "Client":
    """The platform that was said, else the one of this machine.

    Raises:
        PlatformError: none was said and none is up.
    """
    from canard.client import Client
    from canard.local_platform import running

    if api_url:
        return Client(api_url=api_url)
    found = running()
    if found is None:
        raise PlatformError(
            f"no platform is up on this machine: start it with `canard up`, or say which with --api-url"
            f" or {API_URL_VARIABLE}"
        )
    return Client(api_url=found.url, api_key=found.api_key)


@click.command()
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True)
@api_url_option
@json_option
def runs(limit: int, api_url: str | None, *, as_json: bool) -> None:
    """List your runs, newest first."""
    with connect(api_url) as client:
        found = client.list_runs(limit)
    if as_json:
        click.echo(json.dumps([run_facts(run) for run in found]))
        return
    rows = [(run.slug, run.status, tasks_done(run), when(run.created_at), run.name) for run in found]
    print_table(("run", "status", "tasks", "created", "name"), rows)


@click.command()
@click.argument("run_slug", metavar="RUN")
@api_url_option
@json_option
def show(run_slug: str, api_url: str | None, *, as_json: bool) -> None:
    """Show a run and its tasks."""
    with connect(api_url) as client:
        run = client.get_run(run_slug)
        tasks = client.get_run_tasks(run_slug)
    if as_json:
        told = {**run_facts(run), "tasks": [task.model_dump(mode="json") for task in tasks]}
        click.echo(json.dumps(told))
        return
    click.echo(f"{run.slug} ({run.name}): {run.status}, {tasks_done(run)} tasks, {run.progress:.0%}")
    click.echo(run.dashboard_url)
    print_table(
        ("task", "values", "status", "done", "mean reward", "error"), [task_row(task) for task in tasks]
    )


@click.command()
@click.argument("run_slug", metavar="RUN")
@api_url_option
def watch(run_slug: str, api_url: str | None) -> None:
    """Wait for a run with a progress bar; Ctrl-C leaves it running."""
    with connect(api_url) as client:
        handle = client.attach(run_slug)
        try:
            handle.wait_for_completion()
        except KeyboardInterrupt:
            click.echo(handle.goes_on, err=True)
            sys.exit(130)
        click.echo(f"{handle.slug} completed: {handle.url}")


@click.command()
@click.argument("run_slug", metavar="RUN")
@click.option(
    "--task", "index", type=click.IntRange(0), help="Number of the task in the run, from 0; else all."
)
@api_url_option
def logs(run_slug: str, index: int | None, api_url: str | None) -> None:
    """Print what the tasks of a run printed, in their newest attempts."""
    with connect(api_url) as client:
        tasks = client.get_run_tasks(run_slug)
        chosen = [task for task in tasks if index is None or task.index == index]
        if not chosen:
            raise InvalidRequestError(f"--task: {run_slug} has tasks 0 to {len(tasks) - 1}", field="task")
        for task in chosen:
            if len(chosen) > 1:
                click.echo(f"== task {task.index} ({task.status}) ==")
            click.echo(client.get_task_log(run_slug, task.id).rstrip("\n"))


@click.command()
@click.argument("run_slug", metavar="RUN")
@api_url_option
@json_option
def cancel(run_slug: str, api_url: str | None, *, as_json: bool) -> None:
    """Cancel what has not ended of a run."""
    with connect(api_url) as client:
        run = client.cancel_run(run_slug)
    click.echo(json.dumps(run_facts(run)) if as_json else f"{run.slug} is {run.status}.")


@click.command(name="open")
@click.argument("run_slug", metavar="[RUN]", required=False)
@click.option("--print-only", is_flag=True, help="Print the link, open no browser.")
@api_url_option
def open_dashboard(run_slug: str | None, api_url: str | None, *, print_only: bool) -> None:
    """Open the dashboard, or a run on it, with a link that signs in once."""
    with connect(api_url) as client:
        page = f"/runs/{client.get_run(run_slug).slug}" if run_slug else "/runs"
        link = client.create_login_link(target=page)
    click.echo(link)
    if not print_only:
        webbrowser.open(link)


def run_facts(run: "Run") -> dict[str, Any]:
    return {**run.model_dump(mode="json"), "dashboard_url": run.dashboard_url, "progress": run.progress}


def tasks_done(run: "Run") -> str:
    return f"{run.completed_tasks}/{run.num_tasks}"


def when(moment: Any) -> str:
    return str(moment.astimezone().strftime("%Y-%m-%d %H:%M %Z"))


def task_row(task: "Task") -> tuple[str, ...]:
    reward = task.training.mean_reward if task.training else None
    return (
        str(task.index),
        ", ".join(f"{name}={json.dumps(value)}" for name, value in task.params.items()),
        task.status,
        f"{task.progress_percent:.0f}%",
        "" if reward is None else f"{reward:.2f}",
        (task.error_message or "").strip().partition("\n")[0],
    )


def print_table(headers: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*headers, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)
