"""Groups of commands that import a subcommand when it is called: what `--help` lists costs no import."""

from __future__ import annotations

import copy
import pkgutil
from collections.abc import Mapping
from typing import Any

import attrs
import click


@attrs.frozen
class Subcommand:
    """A command that is not imported yet."""

    place: str
    """`module:attribute`."""
    help: str
    """The first sentence of its own help."""


class LazyGroup(click.Group):
    """A group whose subcommands are imported on use."""

    def __init__(
        self, *args: Any, subcommands: Mapping[str, Subcommand | click.Group] | None = None, **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self.subcommands = subcommands or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, without importing anything."""
        return sorted(self.subcommands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one subcommand."""
        found = self.subcommands.get(cmd_name)
        if not isinstance(found, Subcommand):
            return found
        command: click.Command = copy.copy(pkgutil.resolve_name(found.place))
        command.name = cmd_name  # a command may have a former name
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands, without importing anything."""
        names = self.list_commands(ctx)
        limit = formatter.width - 6 - max(map(len, names), default=0)
        described = [(name, click.Command(name, help=self.subcommands[name].help)) for name in names]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(limit)) for name, command in described])
