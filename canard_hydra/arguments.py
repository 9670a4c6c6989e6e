"""The command line in the order that Hydra's parser wants: options first, overrides after them."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import hydra
from hydra._internal.utils import get_args_parser

PROGRAM = "canard-hydra"
SHOWN_AND_DONE = ("-h", "--help")


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
        UsageError: there is no such option, or it would be ignored.
    """
    if any(argument in SHOWN_AND_DONE for argument in arguments):
        return CommandLine(options=arguments)
    parser = get_args_parser()
    parser.prog = PROGRAM
    if "--version" in arguments:
        _say_our_version(parser)
    options = [name for action in parser._actions for name in action.option_strings]
    # `-ppo.gamma=1` is the option -p with a value, to a parser.
    _refuse_strangers([one for one in arguments if _is_override_with_dashes(one, options)], options)
    known, strays = parser.parse_known_args(list(arguments))
    _refuse_strangers([one for one in (*strays, *known.overrides) if one.startswith("-")], options)
    if known.package and not known.cfg:
        _refuse(f"--package {known.package}: says what --cfg shows, and there is no --cfg")
    return _parted(arguments, known, strays)


def _say_our_version(parser: ArgumentParser) -> None:
    from importlib.metadata import version

    for action in parser._actions:
        if "--version" in action.option_strings:
            action.version = f"{PROGRAM} {version(PROGRAM)}, Hydra {hydra.__version__}"  # type: ignore[attr-defined]


def _is_override_with_dashes(argument: str, options: Sequence[str]) -> bool:
    name, equals, _ = argument.partition("=")
    return name.startswith("-") and bool(equals) and name not in options


def _refuse_strangers(strangers: Sequence[str], options: Sequence[str]) -> None:
    if strangers:
        _refuse(_no_such_option(strangers[0], options))


def _refuse(message: str) -> NoReturn:
    # Here, since it is seldom needed and its package takes a moment to load.
    from canard_hydra.errors import UsageError

    raise UsageError(message)


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


def _no_such_option(option: str, options: Sequence[str]) -> str:
    import difflib

    from canard_hydra.fields import KNOWN_KEYS

    name, equals, value = option.partition("=")
    key = name.lstrip("-").replace("-", "_")
    if equals or key in KNOWN_KEYS:
        return f"{option}: no such option; values are set without dashes: {key}={value if equals else '...'}"
    near = difflib.get_close_matches(name, options, n=1) if len(name) > 2 else []
    return f"{option}: no such option; " + (f"did you mean {near[0]}?" if near else "see --hydra-help")
