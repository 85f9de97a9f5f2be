"""The command line: `multikueue SUBCOMMAND`. What a subcommand needs is imported when it is called."""

from __future__ import annotations

import errno
import importlib
import sys
from collections.abc import Mapping
from typing import Any, Final

import click

from multikueued import failures

SUBCOMMANDS: Final[Mapping[str, str]] = {
    "demo": "multikueued.demo.command:demo",
    "run": "multikueued.running:run",
}
"""Where each subcommand is: `module:attribute`."""


class LazyGroup(click.Group):
    """A group whose subcommands are imported on use, and whose failures are one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, without importing anything."""
        del ctx
        return sorted(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one subcommand."""
        del ctx
        target = SUBCOMMANDS.get(cmd_name)
        if target is None:
            return None
        module, _, attribute = target.partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; click itself handles wrong usage."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except (Exception, BaseExceptionGroup, KeyboardInterrupt) as error:
            if failures.holds(error, KeyboardInterrupt):
                ctx.exit(failures.INTERRUPTED)
            if failures.holds(error, BrokenPipeError):
                raise BrokenPipeError(errno.EPIPE, "whoever read our output is gone") from error
            click.echo(f"multikueue: error: {failures.message(error)}", file=sys.stderr)
            ctx.exit(failures.exit_code(error))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="multikueue", prog_name="multikueue")
def main() -> None:
    """Dispatch batch jobs of one cluster to many."""
