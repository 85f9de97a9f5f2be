"""The local port: who may ask it, and what it passes on.

Other users of the machine reach it too: it answers with the token that was printed.
"""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import ClassVar, Final

import attrs
from aiohttp import web

from multikueue.errors import ApiError
from multikueue.kube import KubeClient
from multikueued.api_answers import REMOTE_JOB
from multikueued.page.port import API, Source, application
from multikueued.serving.gate import Limits
from multikueued.serving.port import listening
from multikueued.serving.refusal import RefusedError

ADDRESS: Final = "127.0.0.1"
TOKEN_HEADER: Final = "X-Multikueue-Token"
IDLE: Final = 3600.0
"""Seconds of silence in an answer: nothing may happen for long to the jobs that are watched."""


@attrs.frozen
class PassedOn:
    """The manager's API server answers, for the user of the kubeconfig: of the request only its path is passed on."""

    client: KubeClient

    def add_to(self, application: web.Application) -> None:
        """See `Source`."""
        application.router.add_get(f"{API}{{rest:.*}}", self._answer, allow_head=False)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.content_type = "text/plain" if request.path.endswith("/log") else "application/json"
        async with self.client.stream(REMOTE_JOB, request.rel_url.raw_path_qs, idle=IDLE) as pieces:
            await response.prepare(request)
            try:
                async for piece in pieces:
                    await response.write(piece)
            except (ApiError, OSError):  # it has begun: that it breaks off is all that can be said
                if request.transport is not None:
                    request.transport.abort()
                return response
        await response.write_eof()
        return response


@attrs.define(eq=False)
class LocalPort:
    """The page and the API behind it, for who has the token. Implements `Door`."""

    source: Source
    token: str
    namespace: str = ""
    """See `Door`."""
    port: int = attrs.field(default=0, init=False)
    name: ClassVar[str] = "token"

    @property
    def address(self) -> str:
        """What to open: the token stands behind the `#`, which browsers send to nobody."""
        return f"http://{ADDRESS}:{self.port}/#token={self.token}"

    @asynccontextmanager
    async def serving(self, port: int) -> AsyncIterator[None]:
        """Serve while the context lasts.

        Args:
            port: 0 for any free one.

        Raises:
            SettingsError: the port cannot be opened.
        """
        made, limits = application(self.source, self), Limits(connections=32)
        async with listening(made, ADDRESS, port, settings="", limits=limits, streams=True) as self.port:
            yield

    def is_host(self, host: str) -> bool:
        """See `Door`."""
        return host in (f"{ADDRESS}:{self.port}", f"localhost:{self.port}")

    def is_origin(self, origin: str) -> bool:
        """See `Door`."""
        return origin.startswith("http://") and self.is_host(origin.removeprefix("http://"))

    async def let_in(self, request: web.Request) -> None:
        """See `Door`."""
        given = request.headers.get(TOKEN_HEADER, "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, self.token.encode()):
            raise RefusedError(401, "the token is not the one that was printed")
