"""The `canard` command: the platform of this machine, and the runs on any."""

import os
import sys

import click

from canard.cli.commands import Commands
from canard.cli.platform import down, status, up
from canard.cli.runs import cancel, logs, open_dashboard, runs, show, watch
from canard.errors import CanardError


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="canard-hydra", prog_name="canard")
def group() -> None:
    """Train robots by policy gradients: run the platform here, look at runs anywhere, review experiments."""


for command in (up, down, status, runs, show, watch, logs, cancel, open_dashboard):
    group.add_command(command)


def main() -> None:
    """Run the command; errors become one line on stderr and exit code 1, usage errors 2, Ctrl-C 130."""
    try:
        group.main(prog_name="canard", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except CanardError as error:
        click.echo(f"canard: {error}", err=True)
        sys.exit(1)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has left: nothing to say, and nothing to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
