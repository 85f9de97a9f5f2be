"""The options of `multikueue worker`; what each subcommand does is in a module of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any

import anyio
import attrs
import click

from multikueue.kube import ClusterConfig, KubeClient
from multikueued.clusters import ClusterClient
from multikueued.commands.options import (
    FILE,
    KUBECONFIGS,
    MANAGER_CONTEXT,
    NAME,
    WORKER_CONTEXT,
    WORKER_KUBECONFIG,
    WORKER_NAME,
    Duration,
    confirmed,
    named_cluster,
    namespace_option,
    option_of,
    settings_option,
)
from multikueued.settings.config import Settings
from multikueued.settings.file import load_settings
from multikueued.workers.objects import WorkerSide
from multikueued.workers.places import ManagerAccess


@attrs.frozen
class Clusters:
    """Which clusters the command line names."""

    manager: ClusterConfig
    settings: Settings
    worker_context: str | None
    """None: no worker is named."""
    worker_config: ClusterConfig | None

    @property
    def worker(self) -> ClusterConfig:
        """The worker, for a command that must name one."""
        assert self.worker_config is not None, "--worker-context is required"
        return self.worker_config

    def run(self, work: Callable[[ManagerAccess], Awaitable[object]]) -> None:
        """Do something on the manager."""

        async def on_manager() -> None:
            async with KubeClient(self.manager, name="manager") as client:
                await work(ManagerAccess(client, self.settings))

        anyio.run(on_manager)

    def run_on_both(self, work: Callable[[ManagerAccess, ClusterClient], Awaitable[object]]) -> None:
        """Do something on the manager and on the worker."""

        async def on_both(manager: ManagerAccess) -> None:
            async with KubeClient(self.worker, name="worker") as client:
                await work(manager, client)

        self.run(on_both)


def manager_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say where the manager is, as one argument `clusters`."""

    @wraps(command)
    def called(
        kubeconfig: str | None,
        manager_context: str | None,
        config_file: Path | None,
        namespace: str | None,
        worker_context: str | None = None,
        worker_kubeconfig: str | None = None,
        **others: Any,
    ) -> None:
        settings = load_settings(config_file).settings
        if namespace is not None:
            settings = attrs.evolve(settings, namespace=namespace)
        there = worker_kubeconfig or kubeconfig
        worker = named_cluster(there, worker_context) if worker_context is not None else None
        manager = named_cluster(kubeconfig, manager_context)
        command(clusters=Clusters(manager, settings, worker_context, worker), **others)

    options = (
        KUBECONFIGS,
        MANAGER_CONTEXT,
        settings_option("The daemon's settings: kinds, namespace."),
        namespace_option("Of the kubeconfig Secrets, if the settings do not say it."),
    )
    for option in options:
        called = option(called)
    return called


def side_options(command: Callable[..., None], account: str = WorkerSide().account) -> Callable[..., None]:
    """The options that say what the worker keeps for the daemon, as one argument `side`."""

    @wraps(command)
    def called(worker_namespace: str, account: str, **others: Any) -> None:
        command(side=WorkerSide(worker_namespace, account), **others)

    side = WorkerSide()
    called = click.option(
        "--account", type=NAME, default=account, show_default=True, help="The service account there."
    )(called)
    where = click.option(
        "--worker-namespace", type=NAME, default=side.namespace, show_default=True, help="Of the account there."
    )
    called = where(called)
    return WORKER_KUBECONFIG(called)


_BOUND = click.option("--bound", is_flag=True, help="With a token that ends, which the daemon renews (boundTokens).")
_LIFE = click.option("--life", type=Duration(), help="Of a bound token, at least 10m. Without it: 168h.")
NEW_NAME = click.argument("name", type=NAME)
"""Of a worker that need not be there yet."""


@click.command()
@NEW_NAME
@WORKER_CONTEXT
@manager_options
@side_options
@click.option(
    "--server", type=NAME, default="", help="The worker's address for the daemon, if it is not the context's."
)
@click.option("--ca", type=FILE, help="PEM of who signed the server's certificate, if it is not the context's.")
@option_of(
    *("--multikueue-config", "config"),
    completes="configs",
    help="The MultiKueueConfig to list it in. Needed if there are several.",
    default=None,
)
@click.option("--namespaces", default="", help='How they are called there: \'{"team-a": "local-team-a"}\'.')
@click.option("--outside", is_flag=True, help="The daemon runs on this machine: its own address may be a worker's.")
@click.option(
    "--diagnose/--least",
    default=None,
    help="Let the daemon read queues there, for quotas and moves. A new account may, unless --least is given.",
)
@_BOUND
@_LIFE
@click.option("--logs", is_flag=True, help="Let multikueue pods and logs read pods and their logs there.")
@click.option("--timeout", type=Duration(), default="60s", show_default=True, help="For the daemon to connect.")
@click.option("--print", "only_print", is_flag=True, help="Print the YAML, and change nothing.")
@click.option("--with-secret", is_flag=True, help="With --print: the credentials, too.")
def add(
    name: str,
    clusters: Clusters,
    side: WorkerSide,
    ca: Path | None,
    only_print: bool,
    with_secret: bool,
    **facts: Any,
) -> None:
    """Connect the worker cluster NAME.

    It makes a service account there with a role for the daemon's job kinds and a token that does not expire, and on the
    manager a Secret, a MultiKueueCluster and the entry in a MultiKueueConfig. With --bound the token ends, and the
    daemon renews it. It has succeeded once the daemon has connected. The same command again changes nothing, or goes on
    where it was interrupted.
    """
    from multikueued.workers.add import Joining, printed
    from multikueued.workers.add import add as join
    from multikueued.workers.addresses import authority_in

    if with_secret and not only_print:
        raise click.UsageError("--with-secret is for --print")
    if only_print and facts["bound"]:
        raise click.UsageError("--bound is not for --print: the daemon writes that Secret, so GitOps would undo it")
    context = str(clusters.worker_context)
    joining = Joining(name, context, clusters.worker, side, authority=authority_in(ca), **facts)

    async def work(manager: ManagerAccess, client: ClusterClient) -> None:
        if only_print:
            click.echo(await printed(manager, client if with_secret else None, joining), nl=False)
        else:
            await join(manager, client, joining)

    clusters.run_on_both(work)


@click.command()
@WORKER_NAME
@option_of(
    "--worker-context",
    completes="contexts",
    help="The worker's context: remove its account there, too.",
    default=None,
)
@manager_options
@side_options
@click.option("--timeout", type=Duration(), default="0s", show_default=True, help="For its jobs to end.")
@click.option("--force", is_flag=True, help="Remove it although it has jobs; they are lost if the daemon restarts.")
def remove(name: str, clusters: Clusters, side: WorkerSide, timeout: float, force: bool) -> None:
    """Disconnect the worker cluster NAME. It must have no jobs."""
    from multikueued.workers.remove import remove_worker

    given = partial(remove_worker, name=name, timeout=timeout, force=force, side=side)
    if clusters.worker_context is None:
        clusters.run(lambda manager: given(manager, worker=None))
    else:
        clusters.run_on_both(lambda manager, client: given(manager, worker=client))


@click.command()
@WORKER_NAME
@WORKER_CONTEXT
@manager_options
@side_options
@click.option(
    "--timeout", type=Duration(), default="60s", show_default=True, help="Until the daemon has taken the token."
)
@_BOUND
@_LIFE
def rotate(name: str, clusters: Clusters, side: WorkerSide, **wanted: Any) -> None:
    """Give the daemon a new token for the worker cluster NAME, and void the old one once the new one is in use."""
    from multikueued.workers.rotate import rotate as renew

    clusters.run_on_both(lambda manager, client: renew(manager, client, name, side, **wanted))


_REASON = click.option("--reason", default="", help="Told to users whose jobs wait.")


@click.command()
@WORKER_NAME
@manager_options
@_REASON
def cordon(name: str, clusters: Clusters, reason: str) -> None:
    """Offer nothing new to the worker cluster NAME. What runs there stays."""
    from multikueued.workers.jobs import cordon as close

    clusters.run(lambda manager: close(manager, name, reason))


@click.command()
@WORKER_NAME
@manager_options
def uncordon(name: str, clusters: Clusters) -> None:
    """Offer jobs to the worker cluster NAME again."""
    from multikueued.workers.jobs import uncordon as reopen

    clusters.run(lambda manager: reopen(manager, name))


@click.command()
@WORKER_NAME
@manager_options
@_REASON
@click.option("--timeout", type=Duration(), help="For all jobs to be gone. Without it: as long as it takes.")
@click.option("--move", is_flag=True, help="Move its jobs to other workers, one at a time: they begin anew there.")
@click.option("--yes", is_flag=True, help="With --move: do not ask.")
def drain(name: str, clusters: Clusters, reason: str, timeout: float | None, move: bool, yes: bool) -> None:
    """Cordon the worker cluster NAME, and wait until it has no job, and nothing of ours there may have pods.

    For the latter it looks at the worker, with the credentials that the manager holds. While it waits it says for what.
    Exit code 1: something is left, or what runs there could not be looked at.
    """
    from multikueued.workers.drain import drain as empty

    agreed = (lambda question: yes or confirmed(question)) if move else None
    clusters.run(lambda manager: empty(manager, name, timeout, reason=reason, move=agreed))
