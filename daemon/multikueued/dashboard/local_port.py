"""The local port: who may ask it, and what it passes on.

Other pages of the same browser, and other users of the machine, reach it too: it answers a request for its own name,
from its own page, with the token that was printed.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Protocol

import attrs
from aiohttp import web

from multikueue.errors import ApiError
from multikueue.kube import KubeClient
from multikueued.api_answers import GROUP, REMOTE_JOB
from multikueued.logserver.access import RefusedError
from multikueued.logserver.answering import Handler, fixed, refusal
from multikueued.serving.gate import Limits
from multikueued.serving.port import listening

ADDRESS: Final = "127.0.0.1"
TOKEN_HEADER: Final = "X-Multikueue-Token"
IDLE: Final = 3600.0
"""Seconds of silence in an answer: nothing may happen for long to the jobs that are watched."""
PAGE: Final = Path(__file__).parent / "page"
_TYPES: Final = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_SEGMENT: Final = re.compile(r"(?!.*%(2f|5c))[a-z0-9][a-z0-9._~%:-]*", re.IGNORECASE)
"""A part of a path as it is passed on: neither empty, nor `..`, nor an encoded slash."""

API: Final = f"/apis/{GROUP}/"


class Source(Protocol):
    """Who answers for the API."""

    def add_to(self, application: web.Application) -> None:
        """Add the API's routes. A handler may raise ApiError before it has written anything."""


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
    """The page and the API behind it, for who has the token."""

    source: Source
    token: str
    port: int = attrs.field(default=0, init=False)

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
        application = web.Application(middlewares=[self.guarded])
        application.on_response_prepare.append(_with_headers)
        self.source.add_to(application)
        for file in sorted(PAGE.iterdir()):
            if (media_type := _TYPES.get(file.suffix)) is not None:
                name = "" if file.name == "index.html" else file.name
                application.router.add_get(f"/{name}", fixed(file.read_bytes(), media_type), allow_head=False)
        async with listening(
            application, ADDRESS, port, settings="", limits=Limits(connections=32), streams=True
        ) as self.port:
            yield

    @web.middleware
    async def guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse what does not come from this page, and what is no GET."""
        try:
            self._check(request)
            return await handler(request)
        except RefusedError as error:
            return refusal(error)
        except web.HTTPNotFound:
            return refusal(RefusedError(404, "there is no such page here"))
        except ApiError as error:
            return refusal(RefusedError(error.status or 503, str(error)))

    def _check(self, request: web.Request) -> None:
        names = {f"{ADDRESS}:{self.port}", f"localhost:{self.port}"}
        origin = request.headers.get("Origin")
        if request.method != "GET":
            raise RefusedError(405, "this port answers GET only")
        if request.headers.get("Host") not in names or len(request.headers.getall("Host")) != 1:
            raise RefusedError(421, "this port answers for its own name only")
        site = request.headers.get("Sec-Fetch-Site", "none")
        if (origin is not None and origin.removeprefix("http://") not in names) or site not in ("none", "same-origin"):
            raise RefusedError(403, "this port answers its own page only")
        if not request.path.startswith(API):
            return
        given = request.headers.get(TOKEN_HEADER, "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, self.token.encode()):
            raise RefusedError(401, "the token is not the one that was printed")
        if not all(map(_SEGMENT.fullmatch, request.rel_url.raw_path.split("/")[1:])):
            raise RefusedError(400, "this is no path of the API")


async def _with_headers(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
