"""`python -m canard_hydra` and `canard-hydra`: compose an experiment and submit it."""

import sys

from canard_hydra.interrupts import NOTHING_SUBMITTED, leave_at_once


def main() -> None:
    """Run the command line, and exit with its status."""
    leave_at_once(NOTHING_SUBMITTED)
    # Hydra takes a moment to load; Ctrl-C already has its meaning by then.
    from canard_hydra.app import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
