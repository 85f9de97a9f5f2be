"""Answers GETs of the API: lists, objects, watches. Whoever serves says who asks, and what they may."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import anyio
import attrs
import orjson
import structlog
from aiohttp import web

from multikueue.core.model.kinds import EVENT
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import ApiError
from multikueue.protocols import Reader
from multikueued.commands.exits import CommandError
from multikueued.commands.manager_lists import events_of
from multikueued.commands.structured import plain
from multikueued.logserver.access import RefusedError, Rights, Slots
from multikueued.logserver.answers import GROUP, REMOTE_JOB, VERSION, status
from multikueued.logserver.resolving import for_users, told_of_worker
from multikueued.remote.pod_lookup import JobLocator, UnplacedJob, WorkerPods
from multikueued.remote.pods import PodList, pod_list
from multikueued.remoteapi.job_query import (
    as_table,
    continued,
    is_watch,
    job_version,
    list_metadata,
    number_in,
    wanted_jobs,
)
from multikueued.remoteapi.job_watch import job_events
from multikueued.remoteapi.manager_view import ManagerView
from multikueued.remoteapi.objects import API_VERSION, fleet, for_tenants, table
from multikueued.reports.events import EventReport
from multikueued.reports.explanation import Seen, explain

BASE: Final = f"/apis/{GROUP}/{VERSION}"
ASKED_AGAIN: Final = 60.0
"""Seconds after which it is asked again whether a user may watch."""
NAMESPACES: Final = 200
"""Namespaces of one page: who may not read all is asked about each."""
FLEET_KEPT: Final = 5.0
"""Seconds for which an answer about the fleet is given again: it is made of all Workloads."""
LONGEST: Final = 3600.0
"""Seconds of a watch."""

log = structlog.get_logger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@attrs.define(eq=False)
class JobHandlers:
    """Answers for jobs and the fleet, from a view of the manager."""

    view: ManagerView
    reader: Reader
    """Of the manager, for events."""
    rights: Rights
    lists: Slots
    watches: Slots
    locate: Callable[[Json], JobLocator]
    """By the Workload: says where a job is, and reaches its worker."""
    daemon_namespace: str
    _fleet: tuple[float, Any] | None = attrs.field(default=None, init=False)
    """The last answer, and until when it is given again."""

    def add_to(self, application: web.Application) -> None:
        """Add the routes."""
        jobs = f"{BASE}/namespaces/{{namespace}}/{REMOTE_JOB.plural}"
        routes: dict[str, Handler] = {
            f"{BASE}/{REMOTE_JOB.plural}": self.all_jobs,
            jobs: self.all_jobs,
            f"{jobs}/{{name}}": self.job,
            f"{jobs}/{{name}}/explain": self.explained,
            f"{jobs}/{{name}}/events": self.events,
            f"{jobs}/{{name}}/pods": self.pods,
            f"{BASE}/fleet": self.fleet,
            f"{BASE}/remotenamespaces": self.namespaces,
        }
        for path, handler in routes.items():
            application.router.add_get(path, self.answering(handler), allow_head=False)

    def answering(self, handler: Handler) -> Handler:
        """A handler whose refusals are answered as API servers do."""

        async def answer(request: web.Request) -> web.StreamResponse:
            began, code, why, user = anyio.current_time(), 499, "the request was given up", ""
            try:
                user = self.rights.user(request)
                why = self.view.why_not_synced
                if why or not self.view.synced:
                    raise RefusedError(503, why or "the manager has not been read yet", 2)
                response = await handler(request)
                code, why = response.status, ""
                return response
            except RefusedError as error:
                code, why = error.code, str(error)
                return refusal(error, request.match_info.get("name", ""))
            except Exception as error:  # a bug: the traceback goes to the log only
                log.error("internal error", exc_info=error)
                code, why = 500, "this server has failed: ask an operator"
                return refusal(RefusedError(code, why), request.match_info.get("name", ""))
            finally:
                if user:  # strangers have no lines: anybody can send their requests
                    seconds, watch = round(anyio.current_time() - began, 3), is_watch(request)
                    log.info("api read", user=user, path=request.path, watch=watch, code=code, seconds=seconds, why=why)

        return answer

    async def all_jobs(self, request: web.Request) -> web.StreamResponse:
        """List or watch jobs, of one namespace or of all."""
        watch = is_watch(request)
        namespace = request.match_info.get("namespace", "")
        wanted = wanted_jobs(request, namespace)
        await self.rights.check(request, "watch" if watch else "list", REMOTE_JOB.plural, ObjectKey(namespace, ""))
        if watch:
            return await self._watch(request, namespace, wanted)
        with self.lists.of_user(self.rights.user(request)):
            return self._list(request, wanted)

    def _list(self, request: web.Request, wanted: Callable[[Json], bool]) -> web.Response:
        version, after = self._begin(request)
        limit = number_in(request, "limit") or math.inf
        keys = sorted(key for key, one in self.view.jobs.items() if (key.namespace, key.name) > after and wanted(one))
        shown = keys if len(keys) <= limit else keys[: int(limit)]
        items = [self.view.jobs[key] for key in shown]
        metadata = list_metadata(version, shown[-1] if len(shown) < len(keys) else None)
        if as_table(request):
            return _json(table(items, metadata))
        return _json({"apiVersion": API_VERSION, "kind": "RemoteJobList", "metadata": metadata, "items": items})

    def _begin(self, request: web.Request) -> tuple[int, tuple[str, str]]:
        """The version of a list, and the namespace and name behind which its page begins."""
        if not request.query.get("continue"):
            return self.view.version, ("", "")
        version, after = continued(request.query["continue"])
        if version < self.view.begin:
            raise RefusedError(410, "the list has changed too much since: begin again")
        return version, after

    async def _watch(self, request: web.Request, namespace: str, wanted: Callable[[Json], bool]) -> web.StreamResponse:
        began = request.query.get("resourceVersion", "")
        initial = request.query.get("sendInitialEvents") == "true"
        if len(began) > _DIGITS:
            raise RefusedError(400, "resourceVersion: this is none")
        version = int(began) if began.isdecimal() and began != "0" and not initial else None
        bookmarks = request.query.get("allowWatchBookmarks") == "true"
        if version is not None and version < self.view.begin:
            raise RefusedError(410, f"the version {version} is too old: list again")
        in_table, seconds = as_table(request), min(LONGEST, number_in(request, "timeoutSeconds") or LONGEST)
        user = self.rights.user(request)
        with self.watches.of_user(user), self.watches.in_namespace(namespace):
            response = web.StreamResponse(headers={"Cache-Control": "no-store"})
            response.content_type = "application/json"
            await response.prepare(request)
            with anyio.move_on_after(seconds):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._while_permitted, request, namespace, tasks.cancel_scope)
                    async for kind, job in job_events(self.view, version, wanted, initial=initial):
                        shown = table([job], list_metadata(job_version(job))) if in_table and kind in _JOBS else job
                        # White space is a sign of life that is no event: not all clients ask for bookmarks.
                        told = kind in (*_JOBS, "ERROR") or bookmarks or initial
                        try:
                            await response.write(orjson.dumps({"type": kind, "object": shown}) * told + b"\n")
                        except ConnectionError:  # the reader is gone
                            break
                    tasks.cancel_scope.cancel()
            return response

    async def _while_permitted(self, request: web.Request, namespace: str, watch: anyio.CancelScope) -> None:
        while True:
            await anyio.sleep(ASKED_AGAIN)
            try:
                await self.rights.check(request, "watch", REMOTE_JOB.plural, ObjectKey(namespace, ""))
            except RefusedError as error:
                if error.code in (401, 403):
                    watch.cancel()

    async def job(self, request: web.Request) -> web.StreamResponse:
        """One job."""
        one = self.view.jobs[await self._key(request)]
        return _json(table([one], list_metadata(job_version(one))) if as_table(request) else one)

    async def events(self, request: web.Request) -> web.StreamResponse:
        """The events of a job and its Workload, in the order of time."""
        found, why = await self._events_of(request, await self._workload(request, "events"))
        if why:
            raise RefusedError(503, why, 5)
        return _json({"apiVersion": API_VERSION, "kind": "RemoteJobEvents", "items": for_tenants(plain(found))})

    async def pods(self, request: web.Request) -> web.StreamResponse:
        """The pods of a job on the worker that has it."""
        workload = await self._workload(request, "pods")
        with self.lists.of_user(self.rights.user(request)):
            try:
                found = await _pods(self.locate(workload))
            except CommandError as error:
                raise RefusedError(503, str(error), 5) from error
        return _json({"apiVersion": API_VERSION, "kind": "RemoteJobPods", **plain(found)})

    async def explained(self, request: web.Request) -> web.StreamResponse:
        """Why a job is where it is, as `multikueue explain -o json` says it."""
        workload = await self._workload(request, "explain")
        events, why = await self._events_of(request, workload)
        unread = (why,) if why else ()
        seen = Seen(workload, None, self.view.objects, events, self.view.now(), self.daemon_namespace, unread)
        return _json({"apiVersion": API_VERSION, "kind": "RemoteJobExplanation", **for_tenants(plain(explain(seen)))})

    async def _key(self, request: web.Request, part: str = "") -> ObjectKey:
        """The job that is asked for: there is one, and who asks may."""
        key = ObjectKey(request.match_info["namespace"], request.match_info["name"])
        await self.rights.check(request, "get", REMOTE_JOB.plural, key, part)
        if key not in self.view.jobs:
            raise _not_found(key)
        return key

    async def _workload(self, request: web.Request, part: str) -> Json:
        """The Workload of the job that is asked for: it may be gone while the job is still shown."""
        key = await self._key(request, part)
        found = self.view.workload_of(key)
        if found is None:
            raise _not_found(key)
        return found

    async def _events_of(self, request: web.Request, workload: Json) -> tuple[tuple[EventReport, ...], str]:
        with self.lists.of_user(self.rights.user(request)):
            try:
                return await events_of(self.reader, [workload]), ""
            except ApiError:
                return (), f"events cannot be read: this server may not list {EVENT}, or got no answer"

    async def fleet(self, request: web.Request) -> web.StreamResponse:
        """The workers, the queues and the moves."""
        await self.rights.check(request, "get", "fleet", ObjectKey("", ""))
        with self.lists.of_user(self.rights.user(request)):
            if self._fleet is None or anyio.current_time() >= self._fleet[0]:
                made = _json(fleet(self.view.objects, self.view.now(), self.daemon_namespace)).body
                self._fleet = anyio.current_time() + FLEET_KEPT, made
            return web.Response(body=self._fleet[1], content_type="application/json")

    async def namespaces(self, request: web.Request) -> web.StreamResponse:
        """The namespaces with jobs that who asks may list."""
        await self.rights.check(request, "list", "remotenamespaces", ObjectKey("", ""))
        version, (after, _) = self._begin(request)
        known = sorted({key.namespace for key in self.view.jobs if key.namespace > after})
        page = known[:NAMESPACES]
        with self.lists.of_user(self.rights.user(request)):
            items = [{"metadata": {"name": name}} for name in await self.rights.namespaces(request, page)]
        metadata = list_metadata(version, ObjectKey(page[-1], "") if len(page) < len(known) else None)
        return _json({"apiVersion": API_VERSION, "kind": "RemoteNamespaceList", "metadata": metadata, "items": items})


async def _pods(locator: JobLocator) -> PodList | UnplacedJob:
    """
    Raises:
        CommandError: the worker cannot be asked; in words for users.
    """
    with for_users(locator.told):
        sought = await locator.look()
    if isinstance(sought, UnplacedJob):
        return sought
    async with locator.client(sought.worker) as client:
        with for_users(partial(told_of_worker, sought.worker)):
            return pod_list(sought, await WorkerPods(client, sought).now())


_DIGITS: Final = 20
_JOBS: Final = ("ADDED", "MODIFIED", "DELETED")


def _not_found(key: ObjectKey) -> RefusedError:
    return RefusedError(404, f'{REMOTE_JOB.plural}.{GROUP} "{key.name}" not found')


def refusal(error: RefusedError, name: str) -> web.Response:
    """A refusal as API servers answer it."""
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after else {}
    body = status(error.code, str(error), name, error.retry_after)
    return _json(body, error.code, headers)


def _json(body: Json, code: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=code, body=orjson.dumps(body), content_type="application/json", headers=headers)
