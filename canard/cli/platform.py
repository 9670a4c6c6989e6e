"""`canard up`, `down`, `status`."""

import json
import os
import sys
from dataclasses import asdict

import click

from canard.errors import PlatformError
from canard.home import canard_home


@click.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on (8787 if not said).")
@click.option("--slots", type=click.IntRange(1), help="How many tasks run at a time.")
@click.pass_context
def up(context: click.Context, port: int | None, slots: int | None) -> None:
    """Run the platform in the foreground; Ctrl-C ends it.

    Further options go to the service as they are; see: python -m canard_platform serve --help
    """
    from canard.local_platform import SERVICE, refuse_if_not_installed, running

    refuse_if_not_installed()
    found = running()
    if found is not None:
        raise PlatformError(f"the platform is already up at {found.url}; stop it first: canard down")
    command = [sys.executable, "-m", SERVICE, "serve"]
    command += ["--port", str(port)] if port is not None else []
    command += ["--slots", str(slots)] if slots is not None else []
    sys.stdout.flush()
    # In place of this process, so that signals reach the service and its exit code is ours.
    os.execv(sys.executable, [*command, *context.args])  # noqa: S606


@click.command()
def down() -> None:
    """Stop the platform of this machine; what was running goes on after the next start."""
    from canard.local_platform import stop

    click.echo("The platform is down." if stop() else "No platform was up.")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(*, as_json: bool) -> None:
    """Say whether the platform of this machine is up, where, and what it does."""
    from canard.client import Client
    from canard.local_platform import running

    home = canard_home()
    found = running(home)
    if found is None:
        told = {"running": False, "home": str(home)}
        click.echo(json.dumps(told) if as_json else f"down (state in {home}); start it: canard up")
        return
    with Client(api_url=found.url, api_key=found.api_key) as client:
        queue = client.get_queue_status()
    facts = {name: value for name, value in asdict(found).items() if name != "api_key"}
    if as_json:
        click.echo(json.dumps({"running": True, "home": str(home), **facts, "queue": queue.model_dump()}))
        return
    click.echo(f"up at {found.url} (process {found.pid}, state in {home})")
    click.echo(
        f"tasks: {queue.running} running, {queue.queued} queued, {queue.completed} completed,"
        f" {queue.failed} failed; workers: {queue.active_workers}"
    )
