"""Groups of commands that import a subcommand when it is called: no `--help` costs an import."""

from __future__ import annotations

import copy
import functools
import json
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import click
from click.shell_completion import CompletionItem

from multikueue.core.model.name_lists import alike

HELP_FLAGS: Final = ("--help", "-h")
HELP: Final = Path(__file__).parent / "commands" / "help.json"
"""What commands say of themselves, by their place; `python -m tests.docs.cli_reference` writes it."""

_JOB_ADVICE: Final = "a job is one word, TYPE/NAME, as job/train-1"
_LIST_ADVICE: Final[Mapping[str | None, str]] = dict.fromkeys(
    ("jobs", "workers"), "this lists all of them; multikueue explain TYPE/NAME tells of one job"
)


@functools.cache
def stored_help() -> dict[str, Any]:
    """What `HELP` has."""
    return dict(json.loads(HELP.read_text()))


class StoredHelp(click.Command):
    """A command that can do no more than show its help: usage, text and options as they are stored."""

    def __init__(self, name: str, stored: Mapping[str, Any]) -> None:
        super().__init__(name, help=stored["help"])
        self.stored = stored

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """What stands behind its name."""
        return list(self.stored["usage"])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Its options."""
        for heading, rows in self.stored["sections"].items():
            with formatter.section(heading):
                formatter.write_dl([(option, about) for option, about in rows])


Commands: TypeAlias = Mapping[str, str | click.Group]
"""By name: a group; or where a command is that is not imported yet, as `module:attribute`."""


def short_help(command: str | click.Group, limit: int = 45) -> str:
    """What a list of commands says of one, without importing it."""
    text = str(stored_help()[command]["help"]) if isinstance(command, str) else command.help
    return click.Command(None, help=text).get_short_help_str(limit)


class LazyGroup(click.Group):
    """A group whose subcommands are imported on use."""

    def __init__(
        self,
        *args: Any,
        subcommands: Commands | None = None,
        sections: Mapping[str, Commands] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(*args, **settings)
        self.sections = sections or {"Commands": subcommands or {}}
        self.subcommands = {name: command for section in self.sections.values() for name, command in section.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, without importing anything."""
        return sorted(self.subcommands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one subcommand."""
        subcommand = self.subcommands.get(cmd_name)
        if not isinstance(subcommand, str):
            return subcommand
        command: click.Command = copy.copy(pkgutil.resolve_name(subcommand))
        command.name = cmd_name
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The subcommand that is called; where only its help is asked for, that alone."""
        subcommand = self.subcommands.get(args[0])
        if isinstance(subcommand, str) and args[1:2] and args[1] in HELP_FLAGS:
            stored = stored_help().get(subcommand)
            if stored is not None:
                return args[0], StoredHelp(args[0], stored), args[1:2]
        if subcommand is None and not ctx.resilient_parsing and (advice := self._meant(args[0])):
            ctx.fail(f"No such command '{args[0]}'. {advice}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; where it is called as kubectl is, the error says how it is meant."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            command = error.ctx.command if error.ctx is not None else self
            advice = (
                _JOB_ADVICE if any(each.name == "job" for each in command.params) else _LIST_ADVICE.get(command.name)
            )
            extra = error.message.startswith("Got unexpected extra argument") and error.message.endswith(")")
            if advice is None or not extra:
                raise
            raise click.UsageError(f"{error.message}: {advice}", error.ctx) from None

    def _meant(self, name: str) -> str:
        """Which commands, here or one level below, a mistyped name may stand for; empty: none."""
        below = {
            inner: f"{group} {inner}"
            for group, command in self.subcommands.items()
            if isinstance(command, LazyGroup)
            for inner in command.subcommands
        }
        paths = below | {name: name for name in self.subcommands}
        if "/" in name:
            return f"Did you mean explain {name}?"
        close = [paths[path] for path in alike(name, paths, most=3)]
        return f"Did you mean {' or '.join(close)}?" if close else ""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Its options, and its subcommands without importing one of them."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        items = [CompletionItem(name, help=short_help(self.subcommands[name])) for name in names]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands by section, without importing anything."""
        limit = formatter.width - 6 - max(map(len, self.subcommands), default=0)
        for title, section in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, short_help(command, limit)) for name, command in sorted(section.items())])
