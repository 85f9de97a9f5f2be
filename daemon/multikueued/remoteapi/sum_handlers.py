"""Answers that are made of all jobs of the fleet, or of those of it that the viewer may list."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

import anyio
import attrs
import orjson
from aiohttp import web

from multikueue.core.model.names import Json, ObjectKey
from multikueued.api_answers import REMOTE_JOB
from multikueued.clusters import ClusterClient
from multikueued.logserver.access import Rights, Slots
from multikueued.logserver.answering import Handler, as_json
from multikueued.logserver.reading import number_in
from multikueued.reading.manager_lists import not_checked
from multikueued.remoteapi.job_page import JobChoice, job_page
from multikueued.remoteapi.job_query import list_metadata
from multikueued.remoteapi.manager_view import ManagerView
from multikueued.remoteapi.objects import API_VERSION, fleet, for_tenants
from multikueued.remoteapi.overview import timeline
from multikueued.remoteapi.sums import causes_in, jobs_in, overview_of, places_in
from multikueued.serving.refusal import RefusedError

NAMESPACES: Final = 200
"""Namespaces that are asked about at once: who may not read all is asked about each."""
MOST_NAMESPACES: Final = 1000
"""Namespaces of which jobs are shown together to who may not list all; the rest by namespace alone."""
JOBS_KEPT: Final = 2.0
"""Seconds for which a page of jobs is given again: it is looked at while things happen."""
SHARE: Final = 50
"""An answer is given again for at least so many times the CPU time that it took to make: so each takes 2 % of a core at
most, however large the fleet."""
ANSWERS_KEPT: Final = 256
"""How many of those are kept, one for each namespace that is looked at."""
LONGEST_SPAN: Final = 7 * 86_400.0
"""Seconds that a picture of time may show."""
Answers: TypeAlias = dict[tuple[object, ...], tuple[float, bytes]]
"""By what they show: until when they are given again, and the answers."""


@attrs.define(eq=False)
class SumHandlers:
    """Each answer is the same for all who may ask for it, so it is kept by what it shows."""

    view: Callable[[], ManagerView]
    """Raises RefusedError if the manager has not been read."""
    reader: ClusterClient
    """Of the manager, for places in queues."""
    rights: Rights
    lists: Slots
    kept: float
    """Seconds for which an answer is given again."""
    answers: Answers

    def parts(self) -> Mapping[str, Handler]:
        """What there is of a namespace, and of all."""
        return {
            "overview": self.overview,
            "timeline": self.timeline,
            "places": self.places,
            "causes": self.causes,
            "jobpage": self.job_page,
        }

    async def fleet(self, request: web.Request) -> web.StreamResponse:
        """The workers, the queues and the moves."""
        await self.rights.check(request, "get", "fleet", ObjectKey("", ""))

        async def make() -> Json:
            objects = self.view().objects
            jobs = list(self.view().jobs.values())
            return fleet(objects, jobs, self.view().now(), not_checked(objects))

        return await self._made(request, ("fleet",), make)

    async def overview(self, request: web.Request) -> web.StreamResponse:
        """Of the fleet for who may see that; of one namespace for who may list its jobs."""
        namespace = await self._whole(request)

        async def make() -> Json:
            return {
                "apiVersion": API_VERSION,
                "kind": "Overview",
                "metadata": {"name": namespace or "fleet"},
                "status": for_tenants(overview_of(self.view(), namespace)) | {"every": self.kept},
            }

        return await self._made(request, ("overview", namespace), make)

    async def timeline(self, request: web.Request) -> web.StreamResponse:
        """The jobs of a span of time, with the workers that they have had."""
        namespace, asked = await self._whole(request, "list"), request.query
        seconds = min(LONGEST_SPAN, number_in(asked, "seconds") or 3600)
        end = self.view().now()
        if (until := number_in(asked, "until")) is not None:  # beyond what a clock can tell it is now
            end = min(end, datetime.fromtimestamp(min(until, end.timestamp()), UTC))
        with self.lists.of_user(self.rights.user(request)):
            begin = end - timedelta(seconds=seconds)
            status = timeline(
                jobs_in(self.view(), namespace), begin, end, asked.get("worker", ""), asked.get("queue", "")
            )
        return as_json({"apiVersion": API_VERSION, "kind": "Timeline", "status": status | {"every": self.kept}})

    async def places(self, request: web.Request) -> web.StreamResponse:
        """The places of the jobs that wait in a queue."""
        namespace, queue = await self._whole(request, "list"), request.query.get("queue", "")

        async def make() -> Json:
            items = await places_in(self.view(), self.reader, namespace, queue)
            return {"apiVersion": API_VERSION, "kind": "Places", "items": items}

        return await self._made(request, ("places", namespace, queue), make)

    async def causes(self, request: web.Request) -> web.StreamResponse:
        """What keeps the jobs from running that do not."""
        namespace = await self._whole(request, "list")

        async def make() -> Json:
            items = causes_in(self.view(), namespace)
            metadata = list_metadata(self.view().version)
            return {"apiVersion": API_VERSION, "kind": "Causes", "metadata": metadata, "items": items}

        return await self._made(request, ("causes", namespace), make)

    async def job_page(self, request: web.Request) -> web.StreamResponse:
        """One page of the jobs that who asks may list, of those that are chosen; short if it is as it was (`seen`)."""
        namespace, choice = request.match_info.get("namespace", ""), JobChoice.read(request.query)
        where, left_out = ((namespace,), 0) if namespace else await self._readable(request)
        if namespace:
            await self.rights.check(request, "list", REMOTE_JOB.plural, ObjectKey(namespace, ""))

        async def make() -> Json:
            view = self.view()
            jobs = _jobs_of(view, where)
            places: dict[tuple[str, str], Json] = {}
            if choice.queue:
                items = await places_in(view, self.reader, namespace, choice.queue)
                places = {(place["namespace"], place["name"]): place for place in items}
            return job_page(jobs, choice, places) | {"leftOut": left_out, "every": min(self.kept, JOBS_KEPT)}

        body = await self._body(request, ("jobpage", where, choice), make, min(self.kept, JOBS_KEPT))
        seen = hashlib.sha256(body).hexdigest()[:16]
        answer: Json = {"apiVersion": API_VERSION, "kind": "JobPage", "seen": seen}
        if request.query.get("seen") != seen:
            answer["status"] = orjson.Fragment(body)
        return as_json(answer)

    async def _readable(self, request: web.Request) -> tuple[tuple[str, ...], int]:
        """The namespaces whose jobs are shown to who asks, and how many are not looked at; `("",)`: all."""
        try:
            await self.rights.check(request, "list", REMOTE_JOB.plural, ObjectKey("", ""))
        except RefusedError as error:
            if error.code != 403:
                raise
        else:
            return ("",), 0
        known = sorted({key.namespace for key in self.view().jobs})
        readable: list[str] = []
        with self.lists.of_user(self.rights.user(request)):
            for begin in range(0, min(len(known), MOST_NAMESPACES), NAMESPACES):
                readable += await self.rights.namespaces(request, known[begin : begin + NAMESPACES])
        return tuple(readable), max(0, len(known) - MOST_NAMESPACES)

    async def _whole(self, request: web.Request, verb: str = "get") -> str:
        """The namespace that is asked for, of which who asks may list the jobs; empty: all. With `get` that is for who
        may see the fleet, with `list` for who may list jobs everywhere."""
        namespace = request.match_info.get("namespace", "")
        resource = "fleet" if verb == "get" and not namespace else REMOTE_JOB.plural
        await self.rights.check(request, verb if not namespace else "list", resource, ObjectKey(namespace, ""))
        return namespace

    async def _made(
        self, request: web.Request, what: tuple[object, ...], make: Callable[[], Awaitable[Json]]
    ) -> web.StreamResponse:
        return web.Response(body=await self._body(request, what, make, self.kept), content_type="application/json")

    async def _body(
        self, request: web.Request, what: tuple[object, ...], make: Callable[[], Awaitable[Json]], kept: float
    ) -> bytes:
        """An answer that is made of all jobs, again for a while: it is the same for all who may ask for it."""
        with self.lists.of_user(self.rights.user(request)):
            until, body = self.answers.get(what, (0.0, b""))
            if anyio.current_time() >= until:
                began = time.thread_time()
                body = orjson.dumps(await make())
                if len(self.answers) >= ANSWERS_KEPT:
                    self.answers.clear()
                lasts = max(kept, SHARE * (time.thread_time() - began))
                self.answers[what] = anyio.current_time() + lasts, body
            return body


def _jobs_of(view: ManagerView, namespaces: tuple[str, ...]) -> list[Json]:
    if namespaces == ("",):
        return [*view.jobs.values()]
    chosen = frozenset(namespaces)
    return [job for key, job in view.jobs.items() if key.namespace in chosen]
