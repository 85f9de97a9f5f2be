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
        self,
        *args: Any,
        subcommands: Mapping[str, Subcommand | click.Group] | None = None,
        sections: Mapping[str, Mapping[str, Subcommand | click.Group]] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(*args, **settings)
        self.sections = sections or {"Commands": subcommands or {}}
        self.subcommands = {name: one for section in self.sections.values() for name, one in section.items()}

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
        """List the subcommands by section, without importing anything."""
        limit = formatter.width - 6 - max(map(len, self.subcommands), default=0)
        for title, section in self.sections.items():
            described = [(name, click.Command(name, help=one.help)) for name, one in sorted(section.items())]
            with formatter.section(title):
                formatter.write_dl([(name, command.get_short_help_str(limit)) for name, command in described])
