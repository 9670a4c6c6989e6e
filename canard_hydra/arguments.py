"""The command line in the order that Hydra's parser wants: options first, overrides after them."""

import difflib
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass

from hydra._internal.utils import get_args_parser

PROGRAM = "canard-hydra"
SHOWN_AND_DONE = ("--version", "-h", "--help")


@dataclass(frozen=True, kw_only=True)
class CommandLine:
    """What was typed, parted into Hydra's options and the overrides."""

    options: Sequence[str]
    overrides: Sequence[str] = ()
    multirun: bool = False

    @property
    def arguments(self) -> list[str]:
        return [*self.options, *self.overrides]


def read_arguments(arguments: Sequence[str]) -> CommandLine:
    """The same arguments, so that overrides may stand on both sides of `-m`.

    `+experiment=x`, as Hydra's own documentation writes it, is taken too: the group has a place in the
    defaults list, which makes the plus an error to Hydra.

    Raises:
        UsageError: there is no such option.
    """
    if any(argument in SHOWN_AND_DONE for argument in arguments):
        return CommandLine(options=arguments)
    parser = get_args_parser()
    parser.prog = PROGRAM
    known, strays = parser.parse_known_args(list(arguments))
    for stray in strays:
        if stray.startswith("-"):
            # Here, since fields and their models take a moment to load.
            from canard_hydra.errors import UsageError

            raise UsageError(_no_such_option(stray, strays, parser))
    return _parted(arguments, known, strays)


def _parted(arguments: Sequence[str], known: Namespace, strays: Sequence[str]) -> CommandLine:
    overrides = [*known.overrides, *strays]
    options = list(arguments)
    for override in overrides:
        options.remove(override)
    return CommandLine(
        options=options,
        overrides=[_without_plus(override) for override in overrides],
        multirun=bool(known.multirun),
    )


def _without_plus(override: str) -> str:
    return override[1:] if override.startswith("+experiment=") else override


def _no_such_option(option: str, strays: Sequence[str], parser: ArgumentParser) -> str:
    from canard_hydra.fields import KNOWN_KEYS

    key, equals, value = option.lstrip("-").partition("=")
    key = key.replace("-", "_")
    if key in KNOWN_KEYS:
        after = strays[strays.index(option) + 1 :]
        value = value if equals else (after[0] if after else "...")
        return f"{option}: no such option; values are set without dashes: {key}={value}"
    options = [name for action in parser._actions for name in action.option_strings]
    near = difflib.get_close_matches(option.partition("=")[0], options, n=1)
    return f"{option}: no such option; " + (f"did you mean {near[0]}?" if near else "see --hydra-help")
