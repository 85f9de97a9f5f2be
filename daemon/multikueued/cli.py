"""The command line: `multikueue SUBCOMMAND`. A subcommand's module is imported when it is called.

A command that fails prints one message and never a traceback.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from multikueue import AdapterError, KubeconfigError, MultiKueueError, SettingsError
from multikueue.core.model.outside_text import without_controls
from multikueue.errors import Forbidden, Unauthorized, Unreachable
from multikueued.lazy_group import LazyGroup, Subcommand

_GET: Final = {
    "jobs": Subcommand(
        "multikueued.commands.get:get_jobs",
        "List the jobs that MultiKueue looks after, with worker, state, age and reason.",
    ),
    "workers": Subcommand(
        "multikueued.commands.get:get_workers",
        "List the worker clusters, with their connection, jobs, quota in use and last error.",
    ),
}
_QUEUES: Final = {
    "mirror": Subcommand(
        "multikueued.queues.command:mirror_command",
        "Make the twin of the LocalQueue NAME on a worker, and its namespace if that is lacking.",
    ),
}
_RBAC: Final = {
    "api-server": Subcommand(
        "multikueued.rbac.command:logs_server", "Print what multikueue api-server needs on the manager cluster."
    ),
    "logs-server": Subcommand(
        "multikueued.rbac.command:logs_server",
        "Print what multikueue api-server needs on the manager cluster.",
        former=True,
    ),
    "logs-worker": Subcommand(
        "multikueued.rbac.command:logs_worker",
        "Print what multikueue api-server needs on a worker: to read copies, their pods and logs.",
    ),
    "manager": Subcommand("multikueued.rbac.command:manager", "Print what the daemon needs on the manager cluster."),
    "spoke": Subcommand(
        "multikueued.rbac.command:spoke",
        "Print what OCM's work agent needs on a managed cluster to apply the daemon's ClusterPermission.",
    ),
    "user": Subcommand(
        "multikueued.rbac.command:user",
        "Print the roles of who submits jobs and of who looks at them, to be bound in their namespaces.",
    ),
    "worker": Subcommand(
        "multikueued.rbac.command:worker", "Print what the user of a worker's kubeconfig needs on that worker."
    ),
}
_WORKER: Final = {
    "add": Subcommand("multikueued.workers.command:add", "Connect the worker cluster NAME."),
    "cordon": Subcommand("multikueued.workers.command:cordon", "Offer nothing new to the worker cluster NAME."),
    "drain": Subcommand(
        "multikueued.workers.command:drain", "Cordon the worker cluster NAME, and wait until it has no job."
    ),
    "grant-logs": Subcommand(
        "multikueued.workers.logs_account_command:grant_logs_command",
        "Let multikueue api-server read logs of the worker cluster NAME.",
    ),
    "remove": Subcommand("multikueued.workers.command:remove", "Disconnect the worker cluster NAME."),
    "rotate": Subcommand(
        "multikueued.workers.command:rotate",
        "Give the daemon a new token for the worker cluster NAME, and void the old one once the new one is in use.",
    ),
    "uncordon": Subcommand("multikueued.workers.command:uncordon", "Offer jobs to the worker cluster NAME again."),
}
_JOBS: Final[Mapping[str, Subcommand | click.Group]] = {
    "dashboard": Subcommand(
        "multikueued.dashboard.command:dashboard",
        "Show the fleet and the jobs as a page on a local port, with your own kubeconfig, until Ctrl-C.",
    ),
    "events": Subcommand(
        "multikueued.commands.explain:events_command",
        "List the events of JOB and its Workload on the manager, in the order of time.",
    ),
    "exec": Subcommand(
        "multikueued.remote.exec_command:exec_command",
        "Run a command in a container of JOB, on the worker that has it: multikueue exec JOB -it -- sh.",
    ),
    "explain": Subcommand(
        "multikueued.commands.explain:explain_command",
        "Say why JOB is where it is, what happens next, and what to do.",
    ),
    "get": LazyGroup("get", help="List jobs or workers.", subcommands=_GET),
    "logs": Subcommand(
        "multikueued.remote.command:logs_command", "Print the logs of JOB's pods on the worker that has it."
    ),
    "pods": Subcommand("multikueued.remote.command:pods_command", "List the pods of JOB on the worker that has it."),
    "retry": Subcommand(
        "multikueued.commands.retry:retry_command",
        "Ask the workers that refuse JOB again, now; or have a JOB that was rejected looked at again.",
    ),
}
_FLEET: Final[Mapping[str, Subcommand | click.Group]] = {
    "doctor": Subcommand(
        "multikueued.doctor.command:doctor",
        "Look for what is wrong on the manager and on all workers, and say how to mend it.",
    ),
    "queues": LazyGroup(
        "queues", help="Make queues of workers that stand for those of the manager.", subcommands=_QUEUES
    ),
    "rbac": LazyGroup(
        "rbac",
        help="Print the least privileges of the daemon, of servers and of users, as YAML for kubectl apply.",
        subcommands=_RBAC,
    ),
    "status": Subcommand(
        "multikueued.commands.status:status", "Show the workers, the queues, and what needs somebody."
    ),
    "usage": Subcommand(
        "multikueued.commands.usage:usage",
        "Sum up what jobs have used of workers, in resource-hours, by namespace, queue, worker and cost.",
    ),
    "worker": LazyGroup(
        "worker", help="Add, remove and rotate worker clusters; cordon and drain them.", subcommands=_WORKER
    ),
}
_SERVERS: Final[Mapping[str, Subcommand | click.Group]] = {
    "api-server": Subcommand(
        "multikueued.logserver.command:logs_server",
        "Serve jobs, their logs, and the fleet as an API of the manager cluster, until told to stop.",
    ),
    "logs-server": Subcommand(
        "multikueued.logserver.command:logs_server",
        "Serve jobs, their logs, and the fleet as an API of the manager cluster, until told to stop.",
        former=True,
    ),
    "run": Subcommand("multikueued.run.command:run", "Dispatch the jobs of a manager cluster until told to stop."),
}
_TRIAL: Final[Mapping[str, Subcommand | click.Group]] = {
    "demo": Subcommand("multikueued.demo.command:demo", "Show jobs spreading over worker clusters."),
    "sandbox": Subcommand(
        "multikueued.sandbox_command.command:sandbox", "Bring clusters up to practise on, until Ctrl-C."
    ),
}
SECTIONS: Final = {"Jobs": _JOBS, "The fleet": _FLEET, "Servers": _SERVERS, "To try it out": _TRIAL}
"""The subcommands as `--help` lists them."""
SUBCOMMANDS: Final[Mapping[str, Subcommand | click.Group]] = {**_JOBS, **_FLEET, **_SERVERS, **_TRIAL}
USAGE: Final = 2
"""Exit code for errors that the user must fix before trying again: settings, kubeconfig, arguments."""
FAILURE: Final = 1
"""Exit code for all other errors."""
REFUSED: Final = 4
"""Exit code where a cluster does not answer, or refuses: `NOT_REACHABLE` of the commands."""
INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as shells have it: 128 + SIGINT."""


PLUGIN: Final = "kubectl-multikueue"
"""By this name of a file kubectl finds it as `kubectl multikueue`."""


class CommandLine(LazyGroup):
    """The outermost group: it prints an error as one message."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Begin, under the name by which it was called."""
        return super().make_context(
            info_name and info_name.replace(PLUGIN, "kubectl multikueue"), args, parent, **extra
        )

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
            told = without_controls(_told(known) if known is not None else _unexpected(errors[0]))
            click.echo(f"multikueue: error: {told}", file=sys.stderr)
            ctx.exit(_exit_code(known))


@click.group(cls=CommandLine, sections=SECTIONS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="multikueue", prog_name="multikueue")
def main() -> None:
    """Dispatch batch jobs of one cluster to many."""


def known_error(error: BaseException) -> MultiKueueError | None:
    """The first of our own errors, also inside exception groups; None if there is none."""
    return next((one for one in _ungrouped(error) if isinstance(one, MultiKueueError)), None)


def _told(error: MultiKueueError) -> str:
    """An error with what to do about it: no command has said so that does not speak to the manager alone."""
    match error:
        case Forbidden():
            from multikueued.commands.exits import permission

            return f"{permission(error)}: ask for a role that allows it"
        case Unauthorized():
            return f"{error}: renew the credentials of this context in the kubeconfig"
        case Unreachable():
            return f"{error}: look at the kubeconfig, its contexts and the network"
    return str(error)


def _exit_code(error: MultiKueueError | None) -> int:
    """What an error ends with: commands say so themselves (see `multikueued.commands.exits`)."""
    if isinstance(error, Forbidden | Unauthorized | Unreachable):
        return REFUSED
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
