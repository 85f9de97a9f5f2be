"""Where the manager does not serve the API: the same handlers in this process, with the rights of who runs it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import attrs
from aiohttp import web

from multikueue.core.model.names import Json, ObjectKey
from multikueue.kube import KubeClient
from multikueue.runtime.loop import utc_now
from multikueued.commands.options import ReportTarget
from multikueued.doctor.published import NAME as FINDINGS
from multikueued.logserver.access import RefusedError, Slots
from multikueued.logserver.answers import LOG_PATH
from multikueued.logserver.outgoing import Outgoing
from multikueued.logserver.reading import Bounds, Query, read
from multikueued.remote.pod_lookup import Asked, LocatorOfManager
from multikueued.remoteapi.handlers import JobHandlers
from multikueued.remoteapi.manager_view import ManagerView
from multikueued.reports.typenames import type_name
from multikueued.settings.config import Settings

YOU = "you"


class OwnRights:
    """Implements `Rights`: the manager itself has refused what may not be read."""

    def user(self, request: web.Request) -> str:
        """See `Rights`."""
        del request
        return YOU

    async def check(self, request: web.Request, verb: str, resource: str, key: ObjectKey, part: str = "") -> None:
        """See `Rights`."""

    async def namespaces(self, request: web.Request, known: list[str]) -> list[str]:
        """See `Rights`."""
        del request
        return known


@attrs.frozen
class InProcess:
    """Implements `multikueued.dashboard.local_port.Source`."""

    client: KubeClient
    target: ReportTarget
    handlers: JobHandlers

    def add_to(self, application: web.Application) -> None:
        """See `Source`."""
        self.handlers.add_to(application)
        application.router.add_get(LOG_PATH, self.handlers.answering(self._log), allow_head=False)

    async def _log(self, request: web.Request) -> web.StreamResponse:
        key = ObjectKey(request.match_info["namespace"], request.match_info["name"])
        workload = self.handlers.view.workload_of(key)
        if workload is None:
            raise RefusedError(404, f"there is no job {key}")
        bounds = Bounds()
        out = Outgoing(request, bounds.size)
        await read(Query.read(request.query), self.handlers.locate(workload), bounds, out, _permitted)
        return out.response or web.Response()


async def _permitted() -> None:
    """Who runs it may: the worker's credentials have been read with their rights."""


def _located(client: KubeClient, target: ReportTarget, workload: Json) -> LocatorOfManager:
    here = attrs.evolve(target, namespace=ObjectKey.of(workload).namespace)
    return LocatorOfManager(client, Asked(type_name(workload), here, str(Settings().origin)))


@asynccontextmanager
async def in_process(client: KubeClient, target: ReportTarget, namespace: str) -> AsyncIterator[InProcess]:
    """The handlers, while the context lasts.

    Args:
        client: of the manager.
        target: whose kubeconfig, and where the daemon is.
        namespace: of jobs; empty: all.
    """
    view = ManagerView.over(client, utc_now, ObjectKey(target.daemon_namespace, FINDINGS), namespace=namespace)
    handlers = JobHandlers(
        view,
        client,
        OwnRights(),
        Slots(32, 32, "lists"),
        Slots(32, 32, "watches"),
        partial(_located, client, target),
        target.daemon_namespace,
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(view.run)
        yield InProcess(client, target, handlers)
        tasks.cancel_scope.cancel()
