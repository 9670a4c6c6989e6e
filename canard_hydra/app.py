"""The Hydra program: sets Hydra up, runs it, and turns every error into a line and an exit status."""

import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.errors import CompactHydraException
from hydra.types import RunMode
from omegaconf import DictConfig

from canard_hydra import full_error
from canard_hydra.arguments import PROGRAM, CommandLine, read_arguments
from canard_hydra.completion import of_python_m
from canard_hydra.conf_dir import CONFIG_NAME, ConfFolders, own_conf_dir, primary_dir
from canard_hydra.errors import UsageError
from canard_hydra.interrupts import NOTHING_SUBMITTED, status_of
from canard_hydra.searching import maximise_by_default

# Hydra 1.3 wants to be told whose defaults hold; from 1.4 on it deprecates the question.
VERSION_BASE = {"version_base": "1.3"} if hydra.__version__.startswith("1.3.") else {}

MODE_OF_A_CHOSEN_FILE = "hydra.mode changed during config composition"


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns the exit status."""
    show_where = full_error.is_wanted()
    _no_colours_unseen()
    folders = ConfFolders(own_conf_dir(Path.cwd()))
    line = CommandLine(options=arguments)
    try:
        line = read_arguments(arguments)
        script = of_python_m(line.options, line.overrides)
        if script is not None:
            print(script)  # noqa: T201
        else:
            _run_hydra(line, folders)
    except KeyboardInterrupt as interrupt:
        return _fail(str(interrupt) or NOTHING_SUBMITTED, status_of(interrupt))
    except BrokenPipeError:
        # Whoever read the output, such as `head`, has seen enough; Python must not try once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception as error:
        if show_where:
            traceback.print_exc()
        return _fail(f"{PROGRAM}: {_told(error, line, folders)}", 2 if isinstance(error, UsageError) else 1)
    return 0


def _no_colours_unseen() -> None:
    """What is written to a file or a pipe has no colours, whoever writes it: loggers of plugins, too."""
    if not (sys.stdout.isatty() and sys.stderr.isatty()) and "FORCE_COLOR" not in os.environ:
        os.environ.setdefault("NO_COLOR", "1")


def _told(error: Exception, line: CommandLine, folders: ConfFolders) -> str:
    # Only an error needs these.
    from canard_hydra.explain import Said, explain, is_users_mistake
    from canard_hydra.groups import Groups

    groups = Groups.on(folders.search_path)
    said = Said(overrides=line.overrides, multirun=line.multirun, groups=groups)
    if is_users_mistake(error, said):
        return explain(error, said)
    return f"{type(error).__name__}: {error} (for where: {full_error.VARIABLE}=1)"


def _run_hydra(line: CommandLine, folders: ConfFolders) -> None:
    Plugins.instance().register(folders.plugin())
    maximise_by_default()
    try:
        _call_hydra(line.arguments, line, folders)
    except CompactHydraException as error:
        # Hydra 1.4 takes no mode from a file that is chosen, such as those of conf/sweep; it does from here.
        if line.multirun or MODE_OF_A_CHOSEN_FILE not in str(error):
            raise
        _call_hydra([*line.arguments, "hydra.mode=MULTIRUN"], line, folders)


def _call_hydra(arguments: Sequence[str], line: CommandLine, folders: ConfFolders) -> None:
    sys.argv[1:] = arguments
    job = _Job(line.overrides)
    primary = str(primary_dir(folders.own))
    program = hydra.main(config_path=primary, config_name=CONFIG_NAME, **VERSION_BASE)(job.run)
    with full_error.hydra_raises():
        program()
    if job.error is not None:
        raise job.error


class _Job:
    """What Hydra calls without -m. An error is kept for the end: Hydra would print it in its own way."""

    def __init__(self, said: Sequence[str]) -> None:
        self._said = said
        self.error: Exception | None = None

    def run(self, config: DictConfig) -> None:
        try:
            _submit_one(config, self._said)
        except Exception as error:
            self.error = self.error or error


def _submit_one(config: DictConfig, said: Sequence[str]) -> None:
    # The models are loaded here: showing a configuration or its help does not need them.
    from canard.errors import RunFailedError
    from canard_hydra.composed import make_plain
    from canard_hydra.experiment import SUBMISSION, make_experiment
    from canard_hydra.multirun import said_overrides, task_overrides
    from canard_hydra.perform import perform

    whole = HydraConfig.instance().cfg
    assert isinstance(whole, DictConfig)  # noqa: S101 - Hydra has set it
    if whole.hydra.mode == RunMode.MULTIRUN:
        raise UsageError(
            f"hydra/launcher={whole.hydra.runtime.choices.get('hydra/launcher')}: only the launcher 'canard'"
            " makes one run of a multirun; say hydra/launcher=canard, or add"
            " '- override hydra/launcher: canard' to the defaults of your conf/config.yaml"
        )
    if "hydra.mode=RUN" not in said:
        _refuse_a_sweep_that_would_be_left_out(whole)
    # Where the command was given, also when hydra.job.chdir moved away from there.
    with chdir(whole.hydra.runtime.cwd):
        overrides = task_overrides(whole)
        composed = make_plain(config, whole.hydra, overrides=overrides, said=said_overrides(whole))
    for key, one in (("repeats", 1), ("zip", [])):
        if composed.control.get(key, one) != one:
            raise UsageError(f"{key}: is for several members, and there is no -m; nothing was submitted")
    record = Path(whole.hydra.runtime.output_dir) / SUBMISSION
    [outcome] = perform(make_experiment([composed], record=record))
    if outcome.error is not None:
        raise RunFailedError(outcome.error)


def _refuse_a_sweep_that_would_be_left_out(whole: DictConfig) -> None:
    """What a file sweeps over means nothing to Hydra without -m."""
    params = whole.hydra.sweeper.get("params")
    if params:
        raise UsageError(
            f"hydra.sweeper.params: a file sweeps over {', '.join(params)}, but there is no -m; add -m, or"
            " 'mode: MULTIRUN' under hydra: in that file, or say hydra.mode=RUN to train once without them"
        )


def _fail(message: str, status: int) -> int:
    print(message, file=sys.stderr, flush=True)  # noqa: T201
    return status
