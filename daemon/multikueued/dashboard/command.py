"""The command `multikueue dashboard`.

Where the manager does not serve the API, the same handlers run in this process, with the rights of who runs it.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import anyio
import attrs
import click
from aiohttp import web

from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    WORKLOAD,
)
from multikueue.core.model.names import ObjectKey, Resource
from multikueue.errors import Forbidden
from multikueue.kube import KubeClient
from multikueue.kube.served_kinds import ServedKind
from multikueue.runtime.loop import utc_now
from multikueued.api_answers import REMOTE_JOB
from multikueued.commands.options import CLIENT, everywhere_option, target_of, target_options
from multikueued.dashboard.local_port import LocalPort, PassedOn
from multikueued.exits import for_people, listing
from multikueued.logserver.access import Slots
from multikueued.page.port import Source
from multikueued.reading.asked import Asked, ReportTarget
from multikueued.reading.manager_lists import read_findings, read_lease
from multikueued.reading.pod_lookup import LocatorOfManager
from multikueued.remoteapi.handlers import FLEET_KEPT, JobHandlers
from multikueued.remoteapi.history import History
from multikueued.remoteapi.manager_view import FINDINGS_AGAIN, ManagerView
from multikueued.reports.typenames import JobName
from multikueued.settings.config import Settings


@click.command("dashboard")
@target_options
@everywhere_option("Jobs of all namespaces.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The local port; without it: any free one.")
def dashboard(port: int, everywhere: bool, **options: Any) -> None:
    """Show the fleet and the jobs as a page on a local port, with your own kubeconfig, until Ctrl-C.

    Open the address that is printed. It holds a token: whoever has it sees what you may see. Where the manager serves
    our API, the page shows what you may read of that; elsewhere what your kubeconfig may, of one namespace.
    """
    if everywhere and options["namespace"]:
        raise click.UsageError("-n is of one namespace, -A of all")
    target = target_of(options)
    anyio.run(_serve, target, "" if everywhere else target.namespace, port)


async def _serve(target: ReportTarget, namespace: str, port: int) -> None:
    async with dashboard_of(target, namespace, port) as local:
        click.echo(f"Open {local.address}\nCtrl-C ends it.")
        await anyio.sleep_forever()


@asynccontextmanager
async def dashboard_of(
    target: ReportTarget, namespace: str = "", port: int = 0, pace: Pace | None = None
) -> AsyncIterator[LocalPort]:
    """The page of a manager, while the context lasts.

    Args:
        target: the manager, and where the daemon is.
        namespace: of jobs, where the manager does not serve our API, and for who may see no others; empty: all.
        port: 0 for any free one.
        pace: how quickly sums follow, where the manager does not serve our API; None: as there.

    Raises:
        CommandError: the manager does not answer.
        SettingsError: the port cannot be opened.
    """
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(KubeClient(target.config, name="manager", options=CLIENT))
        with for_people(target.config.server):
            served = await client.discover(REMOTE_JOB.gvk)
            unread = await unreadable(client, namespace) if is_alone(served) else frozenset()
        source: Source = PassedOn(client)
        if is_alone(served):
            source = await stack.enter_async_context(in_process(client, target, namespace, unread, pace or Pace()))
        local = LocalPort(source, secrets.token_urlsafe(24), namespace)
        await stack.enter_async_context(local.serving(port))
        yield local


def is_alone(served: ServedKind | None) -> bool:
    """Whether the manager does not serve all that the page asks for: an older server has logs alone."""
    return served is None or "explain" not in served.subresources


async def unreadable(client: KubeClient, namespace: str) -> frozenset[Resource]:
    """What may not be listed of what the page shows beside Workloads.

    Raises:
        Forbidden: Workloads may not be listed: there is nothing to show.
        CommandError: those of all namespaces may not.
    """
    with listing(namespace):
        await client.list(WORKLOAD, namespace=namespace, limit=1)
    refused: set[Resource] = set()

    async def look(resource: Resource) -> None:
        try:
            await client.list(resource, namespace=namespace if resource.namespaced else "", limit=1)
        except Forbidden:
            refused.add(resource)

    async with anyio.create_task_group() as tasks:
        for resource in (LOCAL_QUEUE, CLUSTER_QUEUE, ADMISSION_CHECK, MULTIKUEUE_CONFIG, MULTIKUEUE_CLUSTER):
            tasks.start_soon(look, resource)
    return frozenset(refused)


@attrs.frozen
class Pace:
    """How quickly the page follows, in seconds: a demo lasts ten."""

    sums: float = FLEET_KEPT
    """For which a sum of all jobs is shown again."""
    history: float = 60.0
    """Between two steps of the history."""
    published: float = FINDINGS_AGAIN
    """Between two looks at what the daemon publishes."""


class OwnRights:
    """Implements `Rights`: the manager itself has refused what may not be read."""

    def user(self, request: web.Request) -> str:
        """See `Rights`."""
        del request
        return "you"

    async def check(self, request: web.Request, verb: str, resource: str, key: ObjectKey, part: str = "") -> None:
        """See `Rights`."""

    async def namespaces(self, request: web.Request, known: list[str]) -> list[str]:
        """See `Rights`."""
        del request
        return known


def _located(client: KubeClient, target: ReportTarget, name: JobName, namespace: str) -> LocatorOfManager:
    here = attrs.evolve(target, namespace=namespace)
    return LocatorOfManager(client, Asked(str(name), here, str(Settings().origin)))


@asynccontextmanager
async def in_process(
    client: KubeClient,
    target: ReportTarget,
    namespace: str,
    unread: frozenset[Resource] = frozenset(),
    pace: Pace | None = None,
) -> AsyncIterator[JobHandlers]:
    """The handlers, while the context lasts.

    Args:
        client: of the manager.
        target: whose kubeconfig, and where the daemon is.
        namespace: of jobs; empty: all.
        unread: what may not be listed.
        pace: how quickly sums follow; None: as a server's.
    """
    pace = pace or Pace()
    where = target.daemon_namespace
    published, lease = partial(read_findings, client, where), partial(read_lease, client, where)
    history = History(pace.history)
    view = ManagerView(client, utc_now, published, where, namespace, unread, pace.published, history, lease)
    locate = partial(_located, client, target)
    places = Slots(64, 64, "answers")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(view.run)
        yield JobHandlers(view, client, OwnRights(), locate, places, places, places, kept=pace.sums)
        tasks.cancel_scope.cancel()
