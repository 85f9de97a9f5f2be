"""The server: what is at which path. It checks who asks, takes a place for them, asks whether they may, and reads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import orjson
from aiohttp import web

from multikueued.logserver.answering import Handler, fixed
from multikueued.logserver.answers import documents
from multikueued.logserver.tls import FrontTls
from multikueued.remoteapi.handlers import JobHandlers
from multikueued.serving.gate import Limits
from multikueued.serving.port import listening


def served(tls: FrontTls, jobs: JobHandlers) -> web.Application:
    """What is at which path."""
    application = web.Application()
    application.router.add_get("/healthz", _health(lambda: None))
    application.router.add_get("/readyz", _health(lambda: tls.why_not_ready))
    for path, document in documents().items():
        application.router.add_get(path, jobs.answering.handler(fixed(orjson.dumps(document))))
    jobs.add_to(application)
    return application


def _health(why_not: Callable[[], str | None]) -> Handler:
    async def show(request: web.Request) -> web.StreamResponse:
        del request
        why = why_not()
        return web.Response(text="ok\n") if why is None else web.Response(status=503, text=f"{why}\n")

    return show


@asynccontextmanager
async def serving_logs(tls: FrontTls, jobs: JobHandlers, address: str, port: int) -> AsyncIterator[int]:
    """Serve while the context lasts; it yields the port.

    Raises:
        SettingsError: the address cannot be listened on.
    """
    limits, context = Limits(connections=2 * jobs.logs.most + jobs.watches.most + 64), lambda: tls.context
    application = served(tls, jobs)
    async with listening(
        application, address, port, settings="logs-server", tls=context, limits=limits, streams=True
    ) as open_port:
        yield open_port
