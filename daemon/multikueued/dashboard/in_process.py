"""Where the manager does not serve the API: the same handlers in this process, with the rights of who runs it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import attrs
from aiohttp import web

from multikueue.core.model.names import ObjectKey
from multikueue.kube import KubeClient
from multikueue.runtime.loop import utc_now
from multikueued.commands.manager_lists import read_findings
from multikueued.commands.options import ReportTarget
from multikueued.logserver.access import Slots
from multikueued.remote.pod_lookup import Asked, LocatorOfManager
from multikueued.remoteapi.handlers import JobHandlers
from multikueued.remoteapi.manager_view import ManagerView
from multikueued.reports.typenames import JobName
from multikueued.settings.config import Settings


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
async def in_process(client: KubeClient, target: ReportTarget, namespace: str) -> AsyncIterator[JobHandlers]:
    """The handlers, while the context lasts.

    Args:
        client: of the manager.
        target: whose kubeconfig, and where the daemon is.
        namespace: of jobs; empty: all.
    """
    view = ManagerView(client, utc_now, partial(read_findings, client, target.daemon_namespace), namespace)
    locate = partial(_located, client, target)
    places = Slots(64, 64, "answers")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(view.run)
        yield JobHandlers(view, client, OwnRights(), locate, target.daemon_namespace, places, places, places)
        tasks.cancel_scope.cancel()
