"""What a shell completes: names of jobs, their pods, workers, queues and namespaces, as the manager has them then;
contexts, as the kubeconfig has them.

A manager that does not answer in time, or refuses, completes nothing: no message may stand in somebody's command line.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeAlias

import anyio
import click

from multikueue.core.model.kinds import LOCAL_QUEUE, MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG, NAMESPACE, WORKLOAD
from multikueue.core.model.objects import name_of
from multikueue.errors import Forbidden, KubeconfigError, MultiKueueError
from multikueue.kube import KubeClient
from multikueue.kube.kubeconfigs.kubeconfig_document import Document, refused_as
from multikueue.kube.named_files import named_bytes
from multikueued.clusters import ClusterClient
from multikueued.commands.options import CLIENT, DAEMON_NAMESPACE, kubeconfig_files, manager_config
from multikueued.reading.api_first import ask
from multikueued.reading.asked import Asked, ReportTarget
from multikueued.reading.manager_lists import queue_names
from multikueued.reading.through_api import NAMESPACES, ThroughApi
from multikueued.reports.typenames import jobs_in
from multikueued.settings.config import Settings

Completion: TypeAlias = Callable[[click.Context, str], list[str]]
"""The names that begin with what stands there: of a command, as far as it is written."""
Named: TypeAlias = Callable[[ClusterClient, Asked], Awaitable[Iterable[str]]]
"""Reads names from the manager, by what the command line names so far."""

PATIENCE: Final = 3.0
"""Seconds for the manager to answer: somebody waits at a prompt."""


def of_manager(read: Named) -> Completion:
    """Complete what the manager tells."""

    def complete(context: click.Context, incomplete: str) -> list[str]:
        options: dict[str, Any] = context.params
        named = options.get("context") or options.get("manager_context")
        try:
            manager = manager_config(options.get("kubeconfig"), named)
            namespace = options.get("namespace") or manager.namespace or "default"
            target = ReportTarget(manager, namespace, options.get("daemon_namespace") or DAEMON_NAMESPACE)
            origin = options.get("origin") or str(Settings().origin)
            # Behind an option that has no value yet click has not looked at the arguments.
            job = options.get("job") or next(iter(context.args), "")
            return anyio.run(_read, read, Asked(job, target, origin), incomplete)
        except (MultiKueueError, ExceptionGroup):
            return []

    return complete


async def _read(read: Named, asked: Asked, incomplete: str) -> list[str]:
    with anyio.move_on_after(PATIENCE):
        async with KubeClient(asked.target.config, name="manager", options=CLIENT) as client:
            return _beginning(await read(client, asked), incomplete)
    return []


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})


@of_manager
async def jobs(client: ClusterClient, asked: Asked) -> Iterable[str]:
    """TYPE/NAME of the jobs of a namespace."""
    namespace = asked.target.namespace
    try:
        return jobs_in((await client.list(WORKLOAD, namespace=namespace)).items)
    except Forbidden:
        return [report.job for report in await ThroughApi(client).all_jobs(namespace)]


@of_manager
async def pods(client: ClusterClient, asked: Asked) -> Iterable[str]:
    """The pods of a job."""
    listed = await ask(client, lambda source: source.pods(asked))
    return (pod.name for pod in listed.pods)


@of_manager
async def containers(client: ClusterClient, asked: Asked) -> Iterable[str]:
    """The containers of a job's pods."""
    listed = await ask(client, lambda source: source.pods(asked))
    return (container for pod in listed.pods for container in pod.containers)


@of_manager
async def workers(client: ClusterClient, _asked: Asked) -> Iterable[str]:
    """The names of the MultiKueueClusters."""
    return map(name_of, (await client.list(MULTIKUEUE_CLUSTER)).items)


@of_manager
async def configs(client: ClusterClient, _asked: Asked) -> Iterable[str]:
    """The names of the MultiKueueConfigs."""
    return map(name_of, (await client.list(MULTIKUEUE_CONFIG)).items)


@of_manager
async def namespaces(client: ClusterClient, _asked: Asked) -> Iterable[str]:
    """The namespaces of the manager; those with jobs where no others may be listed."""
    try:
        return map(name_of, (await client.list(NAMESPACE)).items)
    except Forbidden:
        return map(name_of, (await client.list(NAMESPACES)).items)


@of_manager
async def local_queues(client: ClusterClient, asked: Asked) -> Iterable[str]:
    """The LocalQueues of a namespace."""
    return map(name_of, (await client.list(LOCAL_QUEUE, namespace=asked.target.namespace)).items)


@of_manager
async def queues(client: ClusterClient, asked: Asked) -> Iterable[str]:
    """The LocalQueues of a namespace, and the ClusterQueues, as far as each may be listed."""
    return (name for names in (await queue_names(client, asked.target.namespace)).values() for name in names)


def contexts(context: click.Context, incomplete: str) -> list[str]:
    """The contexts of the kubeconfigs that the command names: no cluster is asked."""
    named = [context.params.get(option) for option in ("kubeconfig", "worker_kubeconfig")]
    try:
        with refused_as(""):
            files = [file for given in named for file in kubeconfig_files(given) if file.is_file()]
            return _beginning(
                (name for file in files for name in Document.parse(named_bytes(file)).contexts), incomplete
            )
    except (KubeconfigError, OSError):
        return []


def kinds(_context: click.Context, incomplete: str) -> list[str]:
    """The kinds of jobs that a sandbox knows, and the word for all of them."""
    from multikueue.sandbox.kinds import AVAILABLE

    return _beginning(("all", *(kind.name for kind in AVAILABLE)), incomplete)
