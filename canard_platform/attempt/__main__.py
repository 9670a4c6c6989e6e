"""`python -m canard_platform.attempt --launch launch.json`: run one attempt beside its trainer."""

import json
import logging
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

import click

from canard_platform.attempt.stop import StopOrder, StopReason


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--launch",
    "launch_file",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Written by the executor; read once and removed, since it holds the attempt's token.",
)
def main(launch_file: Path) -> None:
    """Run one attempt and report it. SIGTERM means that the machine is wanted back."""
    stop = StopOrder()
    _obey_signals(stop)  # first: a notice that comes while the rest is imported counts too
    from canard.errors import PlatformError
    from canard_platform.attempt.attempt import run_attempt
    from canard_platform.attempt.folders import Folders
    from canard_platform.attempt.launch import read_launch
    from canard_platform.files import write_private

    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        launch = read_launch(launch_file)
    except PlatformError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    exit_code = 1
    try:
        exit_code = run_attempt(launch, stop)
    except Exception:
        logging.getLogger(__name__).exception("the attempt runner failed")
    write_private(Folders(launch.work_dir).exit, json.dumps({"exit_code": exit_code}))
    sys.exit(exit_code)


def _obey_signals(stop: StopOrder) -> None:
    def handle(_number: int, _frame: FrameType | None) -> None:
        # Not from the handler itself: it may have interrupted the very code whose lock it would need.
        threading.Thread(target=stop.give, args=(StopReason.PREEMPT,), daemon=True).start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


if __name__ == "__main__":
    main(prog_name="python -m canard_platform.attempt")
