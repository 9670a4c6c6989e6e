"""`python -m canard_platform serve`: the platform of this machine."""

import sys
from pathlib import Path

import click

from canard.api_url import clean
from canard.errors import CanardError
from canard.home import canard_home

DEFAULT_PORT = 8787
BACKGROUND_IDLE_TIMEOUT_S = 3600.0


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """The Canard platform."""


@main.command()
@click.option("--home", type=click.Path(path_type=Path, file_okay=False), help="Default: $CANARD_HOME.")
@click.option("--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True)
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--allow-remote", is_flag=True, help="Allow a host that other machines can reach.")
@click.option("--public-url", help="Address under which others reach it, when not host and port.")
@click.option("--slots", type=click.IntRange(1, 1024), help="Tasks at once; default: GPUs, or up to 4 CPUs.")
@click.option("--background", is_flag=True, help="Take any free port if needed, and stop when idle.")
@click.option(
    "--idle-timeout-s", type=click.FloatRange(min=0, min_open=True), help="Stop after so long idle."
)
@click.option(
    "--trainer-python",
    default=sys.executable,
    envvar="CANARD_TRAINER_PYTHON",
    help="Interpreter whose environment has the trainer and the simulator.",
)
@click.option("--lease-s", type=click.FloatRange(min=0, min_open=True), default=60.0, show_default=True)
@click.option("--heartbeat-s", type=click.FloatRange(min=0, min_open=True), default=3.0, show_default=True)
def serve(
    *,
    home: Path | None,
    port: int,
    host: str,
    allow_remote: bool,
    public_url: str | None,
    slots: int | None,
    background: bool,
    idle_timeout_s: float | None,
    trainer_python: str,
    lease_s: float,
    heartbeat_s: float,
) -> None:
    """Run the API, the queue and the executor of this machine until Ctrl-C."""
    from canard_platform import serve as command  # here, so that --help needs no server

    command.log_to_stderr()
    if background and idle_timeout_s is None:
        idle_timeout_s = BACKGROUND_IDLE_TIMEOUT_S
    try:
        command.serve(
            command.ServeOptions(
                home=(home or canard_home()).expanduser().absolute(),
                host=host,
                port=port,
                any_port=background,
                slots=slots,
                idle_timeout_s=idle_timeout_s,
                trainer_python=trainer_python,
                lease_s=lease_s,
                heartbeat_s=heartbeat_s,
                allow_remote=allow_remote,
                public_url=None if public_url is None else clean(public_url),
            )
        )
    except CanardError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main(prog_name="python -m canard_platform")
