"""Import the user's packages, so that their Gym IDs register."""

import importlib
import sys
import traceback
from collections.abc import Sequence

from trainer.errors import ConfigurationError


def import_modules(names: Sequence[str]) -> None:
    """Import each; what goes wrong inside is the user's own traceback.

    Raises:
        ConfigurationError: a module is not there, or raised while it was imported.
    """
    for name in names:
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as error:  # a script that exits when imported would look like success
            # Ours are the frames of importlib; theirs say which line of their code it was.
            traceback.print_exception(error, file=sys.stderr)
            where = _last_line(error)
            raise ConfigurationError(
                f"importing {name} failed: {type(error).__name__}: {error}{where}"
            ) from error


def _last_line(error: BaseException) -> str:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
    frames = [f for f in frames if f.filename != __file__]
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
