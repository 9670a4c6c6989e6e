"""The commands of `canard`, of which other packages bring some: the SDK imports none of them."""

from importlib.metadata import EntryPoint, entry_points

import click

ENTRY_POINTS = "canard.commands"


class Commands(click.Group):
    """What was added, and the click commands under the entry points `canard.commands`, loaded when called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Sorted names of all."""
        return sorted({*super().list_commands(ctx), *entry_points(group=ENTRY_POINTS).names})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name; None when there is none."""
        own = super().get_command(ctx, cmd_name)
        found = tuple(entry_points(group=ENTRY_POINTS, name=cmd_name))
        return own if own is not None or not found else _loaded(found[0])


def _loaded(entry_point: EntryPoint) -> click.Command:
    command = entry_point.load()
    if not isinstance(command, click.Command):
        raise TypeError(f"entry point {entry_point.group}:{entry_point.name} is no click command")
    return command
