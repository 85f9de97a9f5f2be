"""Answers GETs of the API: lists, objects, watches. Whoever serves says who asks, and what they may."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Final

import anyio
import attrs
import orjson
from aiohttp import web

from multikueue.core.model.kinds import EVENT
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import ApiError
from multikueued.api_answers import GROUP, LOG_PATH, REMOTE_JOB, SUBRESOURCE, VERSION
from multikueued.clusters import ClusterClient
from multikueued.exits import CommandError, in_words
from multikueued.logserver.access import Check, Rights, Slots, until_refused
from multikueued.logserver.answering import AUDIT, Answering, Handler, as_json
from multikueued.logserver.outgoing import Outgoing
from multikueued.logserver.reading import Bounds, Query, flag, job_name, number_in, read
from multikueued.reading.manager_lists import events_of, not_checked
from multikueued.reading.own_rights import explained
from multikueued.reading.placed_job import PlacedJob
from multikueued.reading.pod_lookup import JobLocator, UnplacedJob
from multikueued.reading.pods import PodList, pod_list
from multikueued.reading.structured import plain
from multikueued.remoteapi.job_query import (
    as_table,
    continued,
    job_version,
    list_metadata,
    page_of,
    wanted_jobs,
)
from multikueued.remoteapi.job_watch import job_events
from multikueued.remoteapi.manager_view import ManagerView
from multikueued.remoteapi.objects import API_VERSION, for_tenants, table
from multikueued.remoteapi.sum_handlers import NAMESPACES, Answers, SumHandlers
from multikueued.reports.events import EventReport
from multikueued.reports.remedies.audience import Audience, audience_of
from multikueued.reports.seen import Seen
from multikueued.reports.typenames import JobName, type_name
from multikueued.serving.refusal import RefusedError

BASE: Final = f"/apis/{GROUP}/{VERSION}"
FLEET_KEPT: Final = 5.0
"""Seconds for which an answer about the fleet, or about all jobs of a namespace, is given again: it is made of all
Workloads."""
AHEAD: Final = 1_000_000
"""How many versions another replica may have seen before this one: a manager writes some thousand in a second."""
LONGEST: Final = 3600.0
"""Seconds of a watch."""


@attrs.define(eq=False)
class JobHandlers:
    """Answers for jobs and the fleet, from a view of the manager."""

    reads: ManagerView
    reader: ClusterClient
    """Of the manager, for events and for places in queues."""
    rights: Rights
    locate: Callable[[JobName, str], JobLocator]
    """By name and namespace: says where a job is, and reaches its worker."""
    logs: Slots
    lists: Slots
    watches: Slots
    bounds: Bounds = attrs.field(factory=Bounds)
    """Of a log."""
    kept: float = attrs.field(factory=lambda: FLEET_KEPT)
    """Seconds for which an answer that is made of all jobs is given again."""
    answers: Answers = attrs.field(factory=dict, repr=False)
    """Those: handlers with other rights give the same ones."""
    answering: Answering = attrs.field(default=attrs.Factory(lambda self: Answering(self.rights), True), init=False)
    sums: SumHandlers = attrs.field(init=False)

    @sums.default
    def _sums(self) -> SumHandlers:
        return SumHandlers(lambda: self.view, self.reader, self.rights, self.lists, self.kept, self.answers)

    def add_to(self, application: web.Application) -> None:
        """Add the routes."""
        application.router.add_get(LOG_PATH, self.answering.handler(self.log, "log read"), allow_head=False)
        jobs = f"{BASE}/namespaces/{{namespace}}/{REMOTE_JOB.plural}"
        routes: dict[str, Handler] = {
            f"{BASE}/{REMOTE_JOB.plural}": self.all_jobs,
            jobs: self.all_jobs,
            f"{jobs}/{{name}}": self.job,
            f"{jobs}/{{name}}/explain": self.explained,
            f"{jobs}/{{name}}/events": self.events,
            f"{jobs}/{{name}}/pods": self.pods,
            f"{BASE}/fleet": self.sums.fleet,
            f"{BASE}/remotenamespaces": self.namespaces,
        }
        for part, handler in self.sums.parts().items():
            routes |= {f"{at}/{part}": handler for at in (BASE, f"{BASE}/namespaces/{{namespace}}")}
        for path, handler in routes.items():
            application.router.add_get(path, self.answering.handler(handler, "api read"), allow_head=False)

    @property
    def view(self) -> ManagerView:
        """The manager.

        Raises:
            RefusedError: it has not been read, or not for a while.
        """
        why = self.reads.why_not_synced
        if why or not self.reads.synced:
            raise RefusedError(503, why or "the manager has not been read yet", 2)
        return self.reads

    async def log(self, request: web.Request) -> web.StreamResponse:
        """The logs of a job; they need no view."""
        key, out = _key(request), Outgoing(request, self.bounds.size)
        audit: dict[str, object] = {"namespace": key.namespace, "job": key.name, "worker": "", "bytes": 0}
        request[AUDIT], places = audit, self._located(key)
        try:
            with self.logs.of_user(self.rights.user(request)):
                query = Query.read(request.query)
                check = partial(self.rights.check, request, "get", REMOTE_JOB.plural, key, SUBRESOURCE)
                await check()
                out.most = min(self.bounds.size, self.bounds.size if query.limit is None else query.limit)
                with self.logs.in_namespace(key.namespace):
                    audit["why"] = await read(query, places, self.bounds, out, check)
            return out.response or web.Response()
        finally:
            audit |= {"worker": places.worker, "bytes": out.sent}

    def _located(self, key: ObjectKey) -> JobLocator:
        workload = self.reads.workload_of(key)
        name = JobName.parse(type_name(workload)) if workload is not None else job_name(key)
        return self.locate(name, key.namespace)

    async def all_jobs(self, request: web.Request) -> web.StreamResponse:
        """List or watch jobs, of one namespace or of all."""
        watch = flag(request.query, "watch")
        namespace = request.match_info.get("namespace", "")
        wanted, key = wanted_jobs(request, namespace), ObjectKey(namespace, "")
        check = partial(self.rights.check, request, "watch" if watch else "list", REMOTE_JOB.plural, key)
        await check()
        if watch:
            return await self._watch(request, namespace, wanted, check)
        with self.lists.of_user(self.rights.user(request)):
            return await self._list(request, wanted)

    async def _list(self, request: web.Request, wanted: Callable[[Json], bool]) -> web.Response:
        version, after = self._begin(request)
        self._check_given(number_in(request.query, "resourceVersion") or 0)
        items, last = await page_of(self.view.jobs, wanted, after, number_in(request.query, "limit") or math.inf)
        metadata = list_metadata(version, last)
        if as_table(request):
            return as_json(table(items, metadata))
        return as_json({"apiVersion": API_VERSION, "kind": "RemoteJobList", "metadata": metadata, "items": items})

    def _begin(self, request: web.Request) -> tuple[int, tuple[str, str]]:
        """The version of a list, and the namespace and name behind which its page begins."""
        if not request.query.get("continue"):
            return self.view.version, ("", "")
        version, after = continued(request.query["continue"])
        if version < self.view.begin:
            raise RefusedError(410, "the list has changed too much since: begin again")
        self._check_given(version)
        return version, after

    def _check_given(self, version: int) -> None:
        """Raise `RefusedError` if no server has given that version: it would be behind all that is to come."""
        if version > self.view.newest + AHEAD:
            raise RefusedError(410, "no server has given that version: list again")

    async def _watch(
        self, request: web.Request, namespace: str, wanted: Callable[[Json], bool], check: Check
    ) -> web.StreamResponse:
        initial = flag(request.query, "sendInitialEvents")
        version = number_in(request.query, "resourceVersion") if not initial else None
        bookmarks = flag(request.query, "allowWatchBookmarks") or initial
        if version and version < self.view.begin:
            raise RefusedError(410, f"the version {version} is too old: list again")
        self._check_given(version or 0)
        in_table, seconds = as_table(request), min(LONGEST, number_in(request.query, "timeoutSeconds") or LONGEST)
        view = self.view
        with self.watches.of_user(self.rights.user(request)), self.watches.in_namespace(namespace):
            response = web.StreamResponse(headers={"Cache-Control": "no-store"})
            response.content_type = "application/json"
            await response.prepare(request)
            with anyio.move_on_after(seconds):
                async with anyio.create_task_group() as tasks:

                    async def ask_again() -> None:
                        await until_refused(check)
                        tasks.cancel_scope.cancel()

                    tasks.start_soon(ask_again)
                    async for kind, job in job_events(view, version or None, wanted, initial=initial):
                        shown = table([job], list_metadata(job_version(job))) if in_table and kind in _JOBS else job
                        # White space is a sign of life that is no event: not all clients ask for bookmarks.
                        is_shown = kind in (*_JOBS, "ERROR") or bookmarks
                        try:
                            await response.write(orjson.dumps({"type": kind, "object": shown}) * is_shown + b"\n")
                        except ConnectionError:  # the reader is gone
                            break
                    tasks.cancel_scope.cancel()
            return response

    async def job(self, request: web.Request) -> web.StreamResponse:
        """One job."""
        await self._allowed(request)
        job = self.view.jobs[_key(request)]
        return as_json(table([job], list_metadata(job_version(job))) if as_table(request) else job)

    async def events(self, request: web.Request) -> web.StreamResponse:
        """The events of a job and its Workload, in the order of time."""
        events, why = await self._events_of(request, await self._allowed(request, "events"))
        if why:
            raise RefusedError(503, why, 5)
        return as_json({"apiVersion": API_VERSION, "kind": "RemoteJobEvents", "items": for_tenants(plain(events))})

    async def pods(self, request: web.Request) -> web.StreamResponse:
        """The pods of a job on the worker that has it."""
        await self._allowed(request, "pods")
        places = self._located(_key(request))
        with self.lists.of_user(self.rights.user(request)):
            try:
                with in_words(places.words):
                    answer: PlacedJob | UnplacedJob | PodList = await places.look()
                if isinstance(answer, PlacedJob):
                    async with places.pods_of(answer) as pods:
                        answer = pod_list(answer, await pods.now())
            except CommandError as error:
                raise RefusedError(503, str(error), 5) from error
        return as_json({"apiVersion": API_VERSION, "kind": "RemoteJobPods", **plain(answer)})

    async def explained(self, request: web.Request) -> web.StreamResponse:
        """Why a job is where it is, as `multikueue explain -o json` says it."""
        workload = await self._allowed(request, "explain")
        events, why = await self._events_of(request, workload)
        view = self.view
        seen = Seen(
            workload,
            None,
            view.objects,
            events,
            view.now(),
            not_checked=(*not_checked(view.context), *filter(None, (why,))),
            others=view.others_of(_key(request)),
            audience=await self._audience(request),
            others_named=False,
        )
        made = for_tenants(plain(await explained(self.reader, seen, view.namespace)))
        return as_json({"apiVersion": API_VERSION, "kind": "RemoteJobExplanation", **made})

    async def _audience(self, request: web.Request) -> Audience:
        """Whom remedies are for: who may read the fleet runs it."""
        if (audience := audience_of(self.view.unread)) is not Audience.OPERATOR:
            return audience
        try:
            await self.rights.check(request, "get", "fleet", ObjectKey("", ""))
        except RefusedError as error:
            if error.code != 403:
                raise
            return Audience.SUBMITTER
        return Audience.OPERATOR

    async def _allowed(self, request: web.Request, part: str = "") -> Json:
        """The Workload of the job that is asked for: there is one, and who asks may."""
        key = _key(request)
        await self.rights.check(request, "get", REMOTE_JOB.plural, key, part)
        workload = self.view.workload_of(key)
        if workload is None or key not in self.view.jobs:
            raise RefusedError(404, f'{REMOTE_JOB.plural}.{GROUP} "{key.name}" not found')
        return workload

    async def _events_of(self, request: web.Request, workload: Json) -> tuple[tuple[EventReport, ...], str]:
        with self.lists.of_user(self.rights.user(request)):
            try:
                return await events_of(self.reader, [workload]), ""
            except ApiError:
                return (), f"events cannot be read: this server may not list {EVENT}, or got no answer"

    async def namespaces(self, request: web.Request) -> web.StreamResponse:
        """The namespaces with jobs that who asks may list: all others are left out, so anybody may ask."""
        version, (after, _) = self._begin(request)
        with self.lists.of_user(self.rights.user(request)):
            known = sorted({key.namespace for key in self.view.jobs if key.namespace > after})
            page = known[:NAMESPACES]
            items = [{"metadata": {"name": name}} for name in await self.rights.namespaces(request, page)]
        metadata = list_metadata(version, ObjectKey(page[-1], "") if len(page) < len(known) else None)
        return as_json({"apiVersion": API_VERSION, "kind": "RemoteNamespaceList", "metadata": metadata, "items": items})


_JOBS: Final = ("ADDED", "MODIFIED", "DELETED")


def _key(request: web.Request) -> ObjectKey:
    return ObjectKey(request.match_info["namespace"], request.match_info["name"])
