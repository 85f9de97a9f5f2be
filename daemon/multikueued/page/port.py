"""What each port of the page does: it gives the page's files to everybody, and the API's answers to whom it lets in.

Pages of other sites reach it through the same browser, also by a name that they make lead to it. So it answers GETs
alone, for its own names (`Host`), from its own page (`Origin`, `Sec-Fetch-Site`). A link may lead to the page from
anywhere.
"""

from __future__ import annotations

import html
import re
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from aiohttp import web

from multikueue.errors import ApiError
from multikueued.api_answers import GROUP
from multikueued.logserver.answering import Handler, fixed, refusal
from multikueued.serving.refusal import RefusedError

API: Final = f"/apis/{GROUP}/"
FILES: Final = Path(__file__).parent / "files"
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
_SAID: Final = 'data-door="token" data-namespace=""'
"""Where the page says how its port lets people in, and whose jobs it shows to who may not see all."""


class Source(Protocol):
    """Who answers for the API."""

    def add_to(self, application: web.Application) -> None:
        """Add the API's routes. A handler may raise ApiError before it has written anything."""


class Door(Protocol):
    """Whom a port lets in."""

    @property
    def name(self) -> str:
        """What the page knows it by: `token` or `sign-in`."""

    @property
    def namespace(self) -> str:
        """Whose jobs are shown to who may not ask which namespaces are theirs; empty: anybody may ask here."""

    def is_host(self, host: str) -> bool:
        """Whether that is a name of this port, as `Host` has it."""

    def is_origin(self, origin: str) -> bool:
        """Whether that is this page, as `Origin` has it."""

    async def let_in(self, request: web.Request) -> None:
        """
        Raises:
            RefusedError: who asks may not ask the API.
        """


def application(source: Source, door: Door) -> web.Application:
    """The page's files, and the API behind a door."""
    made = web.Application(middlewares=[web.middleware(partial(_guarded, door))])
    made.on_response_prepare.append(_with_headers)
    source.add_to(made)
    for file in sorted(FILES.iterdir()):
        if (media_type := _TYPES.get(file.suffix)) is not None:
            name, content = "" if file.name == "index.html" else file.name, file.read_bytes()
            if not name:
                said = f'data-door="{door.name}" data-namespace="{html.escape(door.namespace)}"'
                content = content.replace(_SAID.encode(), said.encode())
            made.router.add_get(f"/{name}", fixed(content, media_type), allow_head=False)
    return made


async def _guarded(door: Door, request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse what does not come from this page, and what is no GET."""
    try:
        _check(door, request)
        if request.path.startswith(API):
            await door.let_in(request)
            if not all(map(_SEGMENT.fullmatch, request.rel_url.raw_path.split("/")[1:])):
                raise RefusedError(400, "this is no path of the API")
        return await handler(request)
    except RefusedError as error:
        return refusal(error)
    except web.HTTPNotFound:
        return refusal(RefusedError(404, "there is no such page here"))
    except ApiError as error:
        return refusal(RefusedError(error.status or 503, str(error)))


def _check(door: Door, request: web.Request) -> None:
    if request.method != "GET":
        raise RefusedError(405, "this port answers GET only")
    hosts = request.headers.getall("Host", [])
    if len(hosts) != 1 or not door.is_host(hosts[0]):
        raise RefusedError(421, "this port answers for its own name only")
    site = request.headers.get("Sec-Fetch-Site", "none")
    own = all(map(door.is_origin, request.headers.getall("Origin", [])))
    # A link elsewhere opens the page itself, as the way back from where somebody has signed in does: not the API.
    opens = request.headers.get("Sec-Fetch-Dest") == "document" and not request.path.startswith(API)
    if not own or not (opens or site in ("none", "same-origin")):
        raise RefusedError(403, "this port answers its own page only")


async def _with_headers(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
