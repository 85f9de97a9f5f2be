"""The command line: `multikueue SUBCOMMAND`. A subcommand's module is imported when it is called.

A command that fails prints one message and never a traceback.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import click

from multikueue.core.model.outside_text import without_controls
from multikueued.lazy_group import Commands, LazyGroup

_GET: Final[Commands] = {
    "jobs": "multikueued.commands.get:get_jobs",
    "workers": "multikueued.commands.get:get_workers",
}
_QUEUES: Final[Commands] = {"mirror": "multikueued.queues.command:mirror_command"}
_RBAC: Final[Commands] = {
    "api-server": "multikueued.commands.rbac:api_server",
    "logs-worker": "multikueued.commands.rbac:logs_worker",
    "manager": "multikueued.commands.rbac:manager",
    "spoke": "multikueued.commands.rbac:spoke",
    "user": "multikueued.commands.rbac:user",
    "worker": "multikueued.commands.rbac:worker",
}
_WORKER: Final[Commands] = {
    "add": "multikueued.workers.command:add",
    "cordon": "multikueued.workers.command:cordon",
    "drain": "multikueued.workers.command:drain",
    "grant-logs": "multikueued.workers.logs_account:grant_logs_command",
    "list": "multikueued.commands.get:get_workers",
    "remove": "multikueued.workers.command:remove",
    "rotate": "multikueued.workers.command:rotate",
    "uncordon": "multikueued.workers.command:uncordon",
}
_JOBS: Final[Commands] = {
    "dashboard": "multikueued.dashboard.command:dashboard",
    "events": "multikueued.remote.explain:events_command",
    "exec": "multikueued.remote.exec_command:exec_command",
    "explain": "multikueued.remote.explain:explain_command",
    "get": LazyGroup("get", help="List jobs or workers.", subcommands=_GET),
    "logs": "multikueued.remote.command:logs_command",
    "pods": "multikueued.remote.command:pods_command",
    "retry": "multikueued.commands.retry:retry_command",
}
_FLEET: Final[Commands] = {
    "doctor": "multikueued.doctor.command:doctor",
    "queues": LazyGroup(
        "queues", help="Make queues of workers that stand for those of the manager.", subcommands=_QUEUES
    ),
    "rbac": LazyGroup(
        "rbac",
        help="Print the least privileges of the daemon, of servers and of users, as YAML for kubectl apply.",
        subcommands=_RBAC,
    ),
    "status": "multikueued.commands.status:status",
    "usage": "multikueued.commands.usage:usage",
    "worker": LazyGroup(
        "worker", help="List, add, remove and rotate worker clusters; cordon and drain them.", subcommands=_WORKER
    ),
}
_SERVERS: Final[Commands] = {
    "api-server": "multikueued.api_server.command:api_server",
    "run": "multikueued.run.command:run",
}
_TRIAL: Final[Commands] = {
    "demo": "multikueued.demo.command:demo",
    "sandbox": "multikueued.sandbox_command.command:sandbox",
}
SECTIONS: Final = {"Jobs": _JOBS, "The fleet": _FLEET, "Servers": _SERVERS, "To try it out": _TRIAL}
"""The subcommands as `--help` lists them."""
PLUGIN: Final = "kubectl-multikueue"
"""By this name of a file kubectl finds it as `kubectl multikueue`."""


class CommandLine(LazyGroup):
    """The outermost group: it prints an error as one message."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run, also where standard streams are closed: what goes to one of them is lost."""
        for stream, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
            if getattr(sys, stream) is None:
                setattr(sys, stream, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
        return super().main(*args, **extra)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Begin, under the name by which it was called; options as --help print here."""
        with _one_message():
            return super().make_context(
                info_name and info_name.replace(PLUGIN, "kubectl multikueue"), args, parent, **extra
            )

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; click itself handles wrong usage."""
        with _one_message():
            return super().invoke(ctx)


@contextmanager
def _one_message() -> Iterator[None]:
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except (Exception, BaseExceptionGroup, KeyboardInterrupt) as error:
        from multikueued.exits import INTERRUPTED, in_the_end, ungrouped  # help needs none of it

        errors = list(ungrouped(error))
        if any(isinstance(cause, KeyboardInterrupt) for cause in errors):
            raise click.exceptions.Exit(INTERRUPTED) from error
        if any(isinstance(cause, BrokenPipeError) for cause in errors):
            raise BrokenPipeError(errno.EPIPE, "the reader of our output is gone") from error
        message, code = in_the_end(error)
        # a name that somebody else has chosen could begin a line that looks like ours
        shown = re.sub("\n(?! )", "\n  ", without_controls(message))
        click.echo(f"multikueue: error: {shown}", file=sys.stderr)
        raise click.exceptions.Exit(code) from error


@click.group(cls=CommandLine, sections=SECTIONS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="multikueue", prog_name="multikueue")
def main() -> None:
    """Dispatch batch jobs of one cluster to many."""
