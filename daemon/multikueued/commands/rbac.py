"""`multikueue rbac`: what to grant the daemon, for its settings, as YAML."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from multikueue.core.model.names import OBJECT_NAME, SHORT_NAME, Json
from multikueued.commands.options import NAME, settings_option
from multikueued.rbac.objects import (
    Account,
    NamedUser,
    api_server_objects,
    logs_worker_objects,
    manager_objects,
    spoke_objects,
    user_objects,
    worker_objects,
)
from multikueued.settings.file import load_settings
from multikueued.yaml_output import to_yaml

F = TypeVar("F", bound=Callable[..., Any])
_MOST_OF_NAMES: Final = 200
"""Characters: it leaves room for what the names of some objects end with."""


class NameParameter(click.ParamType[str]):
    """The name of objects."""

    name = "text"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check it."""
        if not _is_name(str(value)):
            known = "up to 200 lower-case letters, digits, dashes and dots, as in multikueue"
            self.fail(f"{str(value)[:200]!r} cannot be an object's name: use {known}", param, ctx)
        return str(value)


class AccountParameter(click.ParamType[Account]):
    """`NAMESPACE/NAME` of a service account."""

    name = "namespace/name"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Account:
        """Read it."""
        if isinstance(value, Account):
            return value
        namespace, slash, name = str(value).partition("/")
        if not slash or SHORT_NAME.fullmatch(namespace) is None or not _is_name(name):
            self.fail(f"{str(value)[:400]!r} is not NAMESPACE/NAME, as kueue-system/multikueue", param, ctx)
        return Account(namespace, name)


def _is_name(text: str) -> bool:
    return len(text) <= _MOST_OF_NAMES and OBJECT_NAME.fullmatch(text) is not None


_SETTINGS: Final = settings_option("The daemon's settings: kinds, quotas, webhook. Without it: the defaults.")


def _name(default: str, about: str = "Of the roles and their bindings.") -> Callable[[F], F]:
    return click.option("--name", type=NameParameter(), default=default, show_default=True, help=about)


_NAME: Final = _name("multikueue")
_LOGS_NAME: Final = _name("multikueue-logs")


def _account(default: str, about: str) -> Callable[[F], F]:
    return click.option("--service-account", type=AccountParameter(), default=default, show_default=True, help=about)


@click.command()
@_SETTINGS
@_NAME
@_account("multikueue/multikueue", "The daemon's. Its namespace must exist.")
def manager(config_file: Path | None, name: str, service_account: Account) -> None:
    """Print what the daemon needs on the manager cluster.

    With ocm.clusterPermissions in the settings, also the ServiceAccount that writes these, and the
    ValidatingAdmissionPolicy by which it can grant nothing else.
    """
    _print(manager_objects(load_settings(config_file).settings, name, service_account))


@click.command()
@_SETTINGS
@_NAME
@_account("kueue-system/multikueue", "Whose token is in the worker's kubeconfig. Its namespace must exist.")
@click.option("--user", type=NAME, default="", help="Whose kubeconfig it is, if that is no service account's.")
@click.option(
    "--diagnose/--least",
    default=True,
    show_default=True,
    help="With what shows why a job waits there, and moves jobs: to read queues, namespaces, CRDs.",
)
@click.option("--logs", is_flag=True, help="Add what multikueue pods and logs read there: pods, their logs, events.")
@click.option("--exec", "exec_", is_flag=True, help="Add what multikueue exec does there: to run commands in any pod.")
@click.option("--bound", is_flag=True, help="Add what renews a bound token: to ask for tokens of this account alone.")
@click.option("--binding", is_flag=True, help="Add the policy by which namespaces take copies of whom they name only.")
def worker(
    config_file: Path | None,
    name: str,
    service_account: Account,
    user: str,
    exec_: bool,
    binding: bool,
    **options: bool,
) -> None:
    """Print what the user of a worker's kubeconfig needs on that worker.

    With --binding, also the ValidatingAdmissionPolicy by which this user makes copies only where the namespace names
    the manager's namespace in its annotation multikueue.dev/allow-from, as MANAGER/NAMESPACE/UID.
    """
    settings = load_settings(config_file).settings
    if binding and not settings.manager_name:
        raise click.UsageError("--binding needs managerName in the settings, by which namespaces name this manager.")
    if user and options["bound"]:
        raise click.UsageError("--bound is for the token of a service account, and not for --user.")
    account = NamedUser(user) if user else service_account
    _print(worker_objects(settings, name, account, exec=exec_, taking=binding, **options))


@click.command("api-server")
@_SETTINGS
@_LOGS_NAME
@_account("multikueue/multikueue-logs", "The server's. Its namespace must exist, and has its Secrets.")
@click.option(
    "--secret",
    "secrets",
    type=NameParameter(),
    multiple=True,
    help="A Secret with the kubeconfig of a worker. Repeat it.",
)
@click.option("--page", is_flag=True, help="Add what its page needs: to ask whose a token is.")
def api_server(
    config_file: Path | None, name: str, service_account: Account, secrets: tuple[str, ...], *, page: bool
) -> None:
    """Print what multikueue api-server needs on the manager cluster."""
    _print(api_server_objects(load_settings(config_file).settings, name, service_account, secrets, page=page))


@click.command("logs-worker")
@_SETTINGS
@_LOGS_NAME
@_account("kueue-system/multikueue-logs", "Whose token is in the server's kubeconfig. Its namespace must exist.")
def logs_worker(config_file: Path | None, name: str, service_account: Account) -> None:
    """Print what multikueue api-server needs on a worker: to read copies, their pods, logs and events."""
    _print(logs_worker_objects(load_settings(config_file).settings, name, service_account))


@click.command()
@_SETTINGS
@_name("multikueue-spoke", "Of the role and its binding.")
@_account(
    "open-cluster-management-agent/klusterlet-work-sa", "Of OCM's work agent, which applies ClusterPermissions there."
)
def spoke(config_file: Path | None, name: str, service_account: Account) -> None:
    """Print what OCM's work agent needs on a managed cluster to apply the daemon's ClusterPermission.

    A klusterlet as OCM installs it may grant any role, and needs nothing more. This is for one that may not.
    """
    _print(spoke_objects(load_settings(config_file).settings, name, service_account))


@click.command()
@_SETTINGS
@_NAME
@click.option("--aggregate", is_flag=True, help="Make them parts of Kubernetes' own roles view and edit.")
def user(config_file: Path | None, name: str, aggregate: bool) -> None:
    """Print the roles of who submits jobs and of who looks at them, to be bound in their namespaces.

    NAME-viewer reads jobs of the settings' kinds, where they run, their pods, logs and events; NAME-submitter may also
    create, change and delete them. Neither names Secrets, workers or other namespaces: kubectl -n team-a create
    rolebinding jobs --clusterrole multikueue-submitter --group team-a
    """
    _print(user_objects(load_settings(config_file).settings, name, aggregate=aggregate))


def _print(objects: list[Json]) -> None:
    click.echo(to_yaml(objects), nl=False)
