"""The server: it checks who asks, takes a place for them, asks whether they may, and reads. Each request is one line of
its log, without contents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import anyio
import attrs
import orjson
import structlog
from aiohttp import web

from multikueue.core.model.names import Json, ObjectKey
from multikueue.runtime.loop import utc_now
from multikueued.logserver.access import AccessReviews, RefusedError, Slots
from multikueued.logserver.answers import LOG_PATH, documents
from multikueued.logserver.frontproxy import User
from multikueued.logserver.outgoing import Outgoing
from multikueued.logserver.reading import Bounds, Query, job_name, read
from multikueued.logserver.resolving import LocatorOfTenant, ReadableWorkers
from multikueued.logserver.tls import FrontTls, peer_of
from multikueued.remoteapi.handlers import JobHandlers, refusal
from multikueued.serving.gate import Limits
from multikueued.serving.port import listening

SETTINGS: Final = "logs-server"
QUIET: Final = 60.0
"""Seconds between two lines about requests that nobody vouches for."""

log = structlog.get_logger(__name__)


@attrs.define(eq=False)
class LogsServer:
    """Answers the front proxy."""

    tls: FrontTls
    access: AccessReviews
    slots: Slots
    workers: ReadableWorkers
    origin: str
    marks: ObjectKey
    """The Secret with the key of marks."""
    bounds: Bounds = attrs.field(factory=Bounds)
    jobs: JobHandlers | None = None
    """Answers for jobs and the fleet; None: logs alone are served."""
    _strangers: int = attrs.field(default=0, init=False)
    """Requests that nobody vouches for, since one was logged."""
    _quiet_until: float = attrs.field(default=float("-inf"), init=False)

    def application(self) -> web.Application:
        """What is served."""
        application = web.Application()
        application.router.add_get("/healthz", self._alive)
        application.router.add_get("/readyz", self._ready)
        for path, document in documents().items():
            application.router.add_get(path, self._discovery(document))
        application.router.add_get(LOG_PATH, self.log, allow_head=False)
        if self.jobs is not None:
            self.jobs.add_to(application)
        return application

    async def log(self, request: web.Request) -> web.StreamResponse:
        """Answer with a log."""
        key = ObjectKey(request.match_info["namespace"], request.match_info["name"])
        began, user, out, places = anyio.current_time(), User(""), Outgoing(request, self.bounds.size), None
        code, why = 499, "the request was given up"
        try:
            user = self.user(request)
            with self.slots.of_user(user.name):
                name, query = job_name(key), Query.read(request.query)
                check = partial(self.access.check, user, key)
                await check()
                out.most = min(self.bounds.size, self.bounds.size if query.limit is None else query.limit)
                places = LocatorOfTenant(self.workers, name, key.namespace, self.origin, self.marks)
                with self.slots.in_namespace(key.namespace):
                    code, why = 200, await read(query, places, self.bounds, out, check)
            return out.response or web.Response()
        except RefusedError as error:
            code, why = error.code, str(error)
            return _refusal(error, key.name)
        except Exception as error:  # a bug: the traceback goes to the log only
            log.error("internal error", exc_info=error)
            code, why = 500, "this server has failed: ask an operator"
            if request.transport is not None and out.begun:
                request.transport.abort()
            return _refusal(RefusedError(code, why), key.name)
        finally:
            tell = log.info if user.name else self._stranger
            tell(
                "log read",
                user=user.name,
                namespace=key.namespace,
                job=key.name,
                worker=places.worker if places is not None else "",
                code=code,
                bytes=out.sent,
                seconds=round(anyio.current_time() - began, 3),
                why=why,
            )

    def _stranger(self, event: str, **fields: object) -> None:
        """Log a request that nobody vouches for: one in a while, for anybody can send them."""
        self._strangers += 1
        if anyio.current_time() >= self._quiet_until:
            log.warning(event, **fields, requests=self._strangers)
            self._strangers, self._quiet_until = 0, anyio.current_time() + QUIET

    def user(self, request: web.Request) -> User:
        """Who asks, by the word of the front proxy.

        Raises:
            RefusedError: nobody vouches for a user.
        """
        connection = request.transport.get_extra_info("ssl_object") if request.transport is not None else None
        peer = peer_of(connection, utc_now())
        if connection is None or peer is None or self.tls.front is None:
            raise RefusedError(401, "only the front proxy of the manager's API servers may ask: use kubectl")
        if not self.tls.is_current(connection.context):
            raise RefusedError(503, "the front proxy's authorities have changed: ask again", 1)
        user = self.tls.front.user(peer, request.headers)
        if user is None:
            raise RefusedError(
                401, "only the front proxy of the manager's API servers may ask, for a user that it names"
            )
        return user

    def _discovery(self, document: Json) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        body = orjson.dumps(document)

        async def show(request: web.Request) -> web.StreamResponse:
            try:
                self.user(request)
            except RefusedError as error:
                return _refusal(error)
            return web.Response(body=body, content_type="application/json")

        return show

    async def _alive(self, request: web.Request) -> web.Response:
        del request
        return web.Response(text="ok\n")

    async def _ready(self, request: web.Request) -> web.Response:
        del request
        why = self.tls.why_not_ready
        return web.Response(text="ok\n") if why is None else web.Response(status=503, text=f"{why}\n")


def _refusal(error: RefusedError, name: str = "") -> web.Response:
    response = refusal(error, name)
    if error.code in (401, 503):
        response.force_close()
    return response


@asynccontextmanager
async def serving_logs(server: LogsServer, address: str, port: int) -> AsyncIterator[int]:
    """Serve while the context lasts; it yields the port.

    Raises:
        SettingsError: the address cannot be listened on.
    """
    watches = server.jobs.watches.most if server.jobs is not None else 0
    limits = Limits(connections=2 * server.slots.most + watches + 64)
    async with listening(
        server.application(),
        address,
        port,
        settings=SETTINGS,
        tls=lambda: server.tls.context,
        limits=limits,
        streams=True,
    ) as served:
        yield served
