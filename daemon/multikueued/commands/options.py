"""The options that commands share: which manager and namespace, how to print, durations, selectors, former names."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar

import click
from click.core import ParameterSource

from multikueue.core.model.written_values import LONGEST_SELECTOR, is_label_selector, parse_duration
from multikueue.errors import KubeconfigError
from multikueue.kube import ClientOptions, ClusterConfig, load_incluster, load_kubeconfig
from multikueue.kube.http.response_limits import LISTS_UNLIMITED
from multikueued.reading.asked import ReportTarget

F = TypeVar("F", bound=Callable[..., Any])
Format: TypeAlias = Literal["table", "wide", "json", "yaml", "name"]

CLIENT: Final = ClientOptions(deadline=20.0, connection_wait=10.0, connections=8, limits=LISTS_UNLIMITED)
"""A person waits: shorter deadlines than the daemon's."""
DEFAULT_KUBECONFIG: Final = Path(".kube") / "config"
DAEMON_NAMESPACE: Final = "kueue-system"


def completed_by(names: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """What a shell completes; it is imported when it does.

    Args:
        names: what of `multikueued.commands.completion` reads them.
    """

    def complete(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
        from multikueued.commands import completion

        offered: list[str] = getattr(completion, names)(context, incomplete)
        return offered

    return complete


class Name(click.ParamType[str]):
    """The name of something. An empty one, as of a script's variable that is not set, would stand for another one."""

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read it. Without the option it may be empty."""
        source = ctx.get_parameter_source(param.name or "") if ctx is not None and param is not None else None
        if not value and source is ParameterSource.COMMANDLINE:
            self.fail("it is empty: is a variable of the shell not set?", param, ctx)
        return value


NAME: Final = Name()
FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
FILES: Final = click.Path().shell_complete
"""Completes paths, of options that take several files in one text as well."""
JOB_NAME: Final = click.argument("job", type=NAME, shell_complete=completed_by("jobs"))
WORKER_NAME: Final = click.argument("name", type=NAME, shell_complete=completed_by("workers"))


def option_of(*names: str, completes: str, help: str, default: str | None = "") -> Callable[[F], F]:
    """An option that takes the name of something; `completes`: see `completed_by`."""
    return click.option(*names, type=NAME, default=default, shell_complete=completed_by(completes), help=help)


def kubeconfig_option(text: str) -> Callable[[F], F]:
    """The option that names kubeconfigs."""
    return click.option(
        "--kubeconfig", type=NAME, envvar="KUBECONFIG", show_envvar=True, shell_complete=FILES, help=text
    )


def namespace_option(text: str) -> Callable[[F], F]:
    """The option -n."""
    return option_of("-n", "--namespace", completes="namespaces", help=text, default=None)


def everywhere_option(text: str) -> Callable[[F], F]:
    """The option -A."""
    return click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help=text)


def settings_option(text: str) -> Callable[[F], F]:
    """The option that names the daemon's settings."""
    return click.option("--config", "--config-file", "config_file", type=FILE, help=text)


def kind_option(text: str) -> Callable[[F], F]:
    """The option that names kinds of jobs for the sandbox; `text`: what is done with them."""
    kinds = completed_by("kinds")
    return click.option(
        *("--kind", "kind_names"),
        type=NAME,
        multiple=True,
        show_default="job",
        metavar="KIND",
        help=text,
        shell_complete=kinds,
    )


CONTAINER: Final = option_of(
    *("-c", "--container"),
    completes="containers",
    help="Without it: the pod's default container, or its first.",
)
CONTEXT: Final = option_of(
    "--context", completes="contexts", help="The context of the kubeconfig, if not its current one.", default=None
)
MANAGER_CONTEXT: Final = option_of(
    *("--context", "--manager-context", "manager_context"),
    completes="contexts",
    help="The manager's context. Without it: the kubeconfig's current one.",
    default=None,
)
"""Of commands that ask a worker as well, whose own context is --worker-context."""
WORKER_CONTEXT: Final = click.option(
    "--worker-context",
    type=NAME,
    required=True,
    shell_complete=completed_by("contexts"),
    help="The worker's context in the kubeconfig.",
)
KUBECONFIGS: Final = kubeconfig_option("A file, or several, merged.")
WORKER_KUBECONFIG: Final = click.option(
    "--worker-kubeconfig",
    type=NAME,
    shell_complete=FILES,
    help="With the worker's context, if --kubeconfig does not have it.",
)
MANAGER_OPTIONS: Final = (
    kubeconfig_option("How to reach the manager cluster. Without it: ~/.kube/config, or the pod's service account."),
    CONTEXT,
)
"""Options that name the manager cluster."""


def target_options(command: F) -> F:
    """Options that name the manager cluster and a namespace."""
    options = (
        *MANAGER_OPTIONS,
        namespace_option("Of jobs. Without it: that of the context, or default."),
        click.option(
            "--daemon-namespace",
            type=NAME,
            default=DAEMON_NAMESPACE,
            shell_complete=completed_by("namespaces"),
            show_default=True,
            help="Where the daemon has its Lease and the kubeconfig Secrets.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _output_option(text: str, *more: Format) -> Callable[[F], F]:
    choice = click.Choice(["table", "wide", "json", "yaml", *more])
    return click.option("-o", "--output", type=choice, default="table", show_default=True, help=text)


OUTPUT: Final = _output_option("How to print: wide has more columns; json and yaml have all fields.")
LISTING: Final = _output_option(
    "How to print: wide has more columns; json and yaml have all fields; name has a name a line.", "name"
)
"""Of a list whose entries have names."""
WATCH: Final = click.option(
    *("-w", "--watch"),
    is_flag=True,
    help="Print anew every 2 seconds, or more rarely where reading takes long, until stopped.",
)


def target_of(options: dict[str, Any]) -> ReportTarget:
    """Take the target options out of a command's options.

    Raises:
        KubeconfigError: the kubeconfig cannot be used.
    """
    config = manager_config(options.pop("kubeconfig"), options.pop("context"))
    namespace = options.pop("namespace") or config.namespace or "default"
    return ReportTarget(config, namespace, options.pop("daemon_namespace"))


def named_cluster(kubeconfig: str | None, context: str | None) -> ClusterConfig:
    """The cluster of a context in the files that `--kubeconfig` or KUBECONFIG names; in kubectl's own if none is.

    Raises:
        KubeconfigError: there is no such context, or it cannot be used.
    """
    return load_kubeconfig(kubeconfig_files(kubeconfig), context)


def kubeconfig_files(kubeconfig: str | None) -> list[Path]:
    """The files that `--kubeconfig` or KUBECONFIG names; kubectl's own if none is."""
    named = [Path(part) for part in (kubeconfig or "").split(os.pathsep) if part]
    return named or [Path.home() / DEFAULT_KUBECONFIG]


def manager_config(kubeconfig: str | None, context: str | None) -> ClusterConfig:
    """How to reach the manager: as kubectl looks for it.

    Args:
        kubeconfig: one file, or several as the variable KUBECONFIG has them.
        context: of the kubeconfig; None: the current one.

    Raises:
        KubeconfigError: there is none, or it cannot be used.
    """
    if kubeconfig:
        return named_cluster(kubeconfig, context)
    usual = Path.home() / DEFAULT_KUBECONFIG
    if usual.is_file():
        return load_kubeconfig(usual, context)
    try:
        return load_incluster(os.environ)
    except KubeconfigError as error:
        message = (
            f"there is no {usual}, and this is not a pod with a service account: name a kubeconfig with --kubeconfig"
        )
        raise KubeconfigError(error.reason, message) from error


class Duration(click.ParamType[float]):
    """Seconds, written as in the settings: `90s`, `15m`."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it."""
        if isinstance(value, float):
            return value
        try:
            return parse_duration(str(value)).total_seconds()
        except ValueError as error:
            self.fail(str(error), param, ctx)


def checked_selector(_context: click.Context, _parameter: click.Parameter, text: str) -> str:
    """The selector of an option.

    Raises:
        click.BadParameter: it is none.
    """
    if text and not is_label_selector(text):
        known = "KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin (A,B), KEY>N, KEY or !KEY, with commas between them"
        raise click.BadParameter(f"{text[:LONGEST_SELECTOR]!r} is no label selector: write {known}")
    return text


def confirmed(question: str) -> bool:
    """Ask at the terminal. An input that has ended says no; Ctrl-C ends the command, also inside of an event loop.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    alone = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.default_int_handler) if alone else None  # a loop's waits for its task
    try:
        return click.confirm(question, err=True)
    except click.Abort as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        click.echo(err=True)
        return False
    finally:
        if alone:
            signal.signal(signal.SIGINT, before)
