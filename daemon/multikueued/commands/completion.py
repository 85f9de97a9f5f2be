"""What a shell completes: names of jobs, workers and namespaces, as the manager has them at that moment.

A manager that does not answer in time, or refuses, completes nothing: no message may stand in somebody's command line.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeAlias

import anyio
import click

from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, NAMESPACE, WORKLOAD
from multikueue.core.model.objects import name_of
from multikueue.errors import Forbidden, MultiKueueError
from multikueue.kube import ClusterConfig, KubeClient
from multikueued.clusters import ClusterClient
from multikueued.commands.options import CLIENT, manager_config
from multikueued.reading.through_api import NAMESPACES, ThroughApi
from multikueued.reports.typenames import jobs_in

Named: TypeAlias = Callable[[ClusterClient, str], Awaitable[Iterable[str]]]
"""Reads names from the manager, of a namespace."""

PATIENCE: Final = 3.0
"""Seconds for the manager to answer: somebody waits at a prompt."""


async def jobs(client: ClusterClient, namespace: str) -> Iterable[str]:
    """TYPE/NAME of the jobs of a namespace."""
    try:
        return jobs_in((await client.list(WORKLOAD, namespace=namespace)).items)
    except Forbidden:
        return [report.job for report in await ThroughApi(client).all_jobs(namespace)]


async def workers(client: ClusterClient, _namespace: str) -> Iterable[str]:
    """The names of the MultiKueueClusters."""
    return map(name_of, (await client.list(MULTIKUEUE_CLUSTER)).items)


async def namespaces(client: ClusterClient, _namespace: str) -> Iterable[str]:
    """The namespaces of the manager; those with jobs where no others may be listed."""
    try:
        return map(name_of, (await client.list(NAMESPACE)).items)
    except Forbidden:
        return map(name_of, (await client.list(NAMESPACES)).items)


def completions(read: Named, context: click.Context, incomplete: str) -> list[str]:
    """The names that begin with what stands there.

    Args:
        read: which names.
        context: of the command, as far as it is written.
        incomplete: the beginning.
    """
    options: dict[str, Any] = context.params
    try:
        manager = manager_config(options.get("kubeconfig"), options.get("context") or options.get("manager_context"))
        return anyio.run(_read, read, manager, options.get("namespace") or manager.namespace or "default", incomplete)
    except (MultiKueueError, ExceptionGroup):
        return []


async def _read(read: Named, manager: ClusterConfig, namespace: str, incomplete: str) -> list[str]:
    with anyio.move_on_after(PATIENCE):
        async with KubeClient(manager, name="manager", options=CLIENT) as client:
            return sorted(name for name in await read(client, namespace) if name.startswith(incomplete))
    return []
