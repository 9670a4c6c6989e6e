"""The command line in the order that Hydra's parser wants: options first, overrides after them."""

from collections.abc import Sequence

from hydra._internal.utils import get_args_parser


def in_hydras_order(arguments: Sequence[str]) -> list[str]:
    """The same arguments, so that overrides may stand on both sides of `-m`.

    `+experiment=x`, as Hydra's own documentation writes it, is taken too: the group has a place in the
    defaults list, which makes the plus an error to Hydra.
    """
    if any(argument in ("--version", "-h", "--help") for argument in arguments):
        return list(arguments)
    known, strays = get_args_parser().parse_known_args(list(arguments))
    if any(stray.startswith("-") for stray in strays):
        return list(arguments)  # An option that does not exist; Hydra's parser says so.
    overrides = [*known.overrides, *strays]
    options = list(arguments)
    for override in overrides:
        options.remove(override)
    return [*options, *(_without_plus(override) for override in overrides)]


def _without_plus(override: str) -> str:
    return override[1:] if override.startswith("+experiment=") else override
