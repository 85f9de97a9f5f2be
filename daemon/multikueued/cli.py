"""The command line: `multikueue SUBCOMMAND`. A subcommand's module is imported when it is called.

A command that fails prints one message and never a traceback.
"""

from __future__ import annotations

import errno
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from multikueue import AdapterError, KubeconfigError, MultiKueueError, SettingsError
from multikueue.core.model.outside_text import without_controls

SUBCOMMANDS: Final[Mapping[str, str]] = {
    "demo": "multikueued.demo.command:demo",
    "doctor": "multikueued.doctor.command:doctor",
    "events": "multikueued.commands.explaining:events_command",
    "exec": "multikueued.remote.exec_command:exec_command",
    "explain": "multikueued.commands.explaining:explain_command",
    "get": "multikueued.commands.listing:get",
    "logs": "multikueued.remote.command:logs_command",
    "logs-server": "multikueued.logserver.command:logs_server",
    "pods": "multikueued.remote.command:pods_command",
    "queues": "multikueued.queues.command:queues",
    "rbac": "multikueued.rbac.command:rbac",
    "retry": "multikueued.commands.explaining:retry_command",
    "run": "multikueued.run.command:run",
    "sandbox": "multikueued.practice.command:sandbox",
    "status": "multikueued.commands.status:status",
    "worker": "multikueued.workers.command:worker",
}
"""Where each subcommand is: `module:attribute`."""

USAGE: Final = 2
"""Exit code for errors that the user must fix before trying again: settings, kubeconfig, arguments."""
FAILURE: Final = 1
"""Exit code for all other errors."""
INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as shells have it: 128 + SIGINT."""


class LazyGroup(click.Group):
    """A group that imports subcommands on use, and prints an error as one message."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, without importing anything."""
        return sorted(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one subcommand."""
        command: click.Command | None = pkgutil.resolve_name(SUBCOMMANDS[cmd_name]) if cmd_name in SUBCOMMANDS else None
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; click itself handles wrong usage."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except (Exception, BaseExceptionGroup, KeyboardInterrupt) as error:
            errors = list(_ungrouped(error))
            if any(isinstance(one, KeyboardInterrupt) for one in errors):
                ctx.exit(INTERRUPTED)
            if any(isinstance(one, BrokenPipeError) for one in errors):
                raise BrokenPipeError(errno.EPIPE, "the reader of our output is gone") from error
            known = known_error(error)
            told = without_controls(str(known or _unexpected(errors[0])))
            click.echo(f"multikueue: error: {told}", file=sys.stderr)
            ctx.exit(_exit_code(known))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="multikueue", prog_name="multikueue")
def main() -> None:
    """Dispatch batch jobs of one cluster to many."""


def known_error(error: BaseException) -> MultiKueueError | None:
    """The first of our own errors, also inside exception groups; None if there is none."""
    return next((one for one in _ungrouped(error) if isinstance(one, MultiKueueError)), None)


def _exit_code(error: MultiKueueError | None) -> int:
    """What an error ends with: commands say so themselves (see `multikueued.commands.exits`)."""
    if isinstance(error, SettingsError | KubeconfigError | AdapterError):
        return USAGE
    return int(getattr(error, "exit_code", FAILURE))


def _ungrouped(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for nested in error.exceptions:
            yield from _ungrouped(nested)
    else:
        yield error


def _unexpected(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"cannot write the output, or a file: {error.strerror}"
    return f"unexpected {type(error).__name__}: {error}; this is a bug, please report it"
