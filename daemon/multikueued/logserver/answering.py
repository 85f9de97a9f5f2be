"""How a request is answered: refusals as API servers have them, and a line of the log for each, without contents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

import anyio
import attrs
import orjson
import structlog
from aiohttp import web

from multikueue.core.model.names import Json
from multikueued.api_answers import GROUP, REMOTE_JOB
from multikueued.logserver.access import Rights
from multikueued.serving.refusal import RefusedError

AUDIT: Final = web.RequestKey("audit", dict[str, object])
"""Where a handler puts, in its request, what its line of the log says beside."""
QUIET: Final = 60.0
"""Seconds between two lines about requests that nobody vouches for."""

_REASONS: Final = {410: "Expired", 500: "InternalError", 504: "Timeout"}
"""Where API servers say it in other words than HTTP."""

log = structlog.get_logger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@attrs.define(eq=False)
class Answering:
    """Makes handlers of functions that raise RefusedError."""

    rights: Rights
    _strangers: int = attrs.field(default=0, init=False)
    """Requests that nobody vouches for, since one was logged."""
    _quiet_until: float = attrs.field(default=float("-inf"), init=False)

    def handler(self, function: Handler, event: str = "") -> Handler:
        """One that answers those who are known.

        Args:
            function: answers; what it puts under AUDIT in the request is logged.
            event: of the line of the log; empty: none is written.
        """

        async def answer(request: web.Request) -> web.StreamResponse:
            began, code, why, user = anyio.current_time(), 499, "the request was given up", ""
            try:
                user = self.rights.user(request)
                response = await function(request)
                code, why = response.status, ""
                return response
            except RefusedError as error:
                code, why = error.code, str(error)
                return refusal(error, request.match_info.get("name", ""))
            except Exception as error:  # a bug: the traceback goes to the log only
                log.error("internal error", exc_info=error)
                code, why = 500, "this server has failed: ask an operator"
                if request.transport is not None and request.writer.output_size:  # the answer has begun
                    request.transport.abort()
                return refusal(RefusedError(code, why), request.match_info.get("name", ""))
            finally:
                line = {"user": user, "code": code, "seconds": round(anyio.current_time() - began, 3), "why": why}
                self._tell(event, line | request.get(AUDIT, {"path": request.path_qs}))

        return answer

    def _tell(self, event: str, line: Json) -> None:
        if line["user"]:
            if event:
                log.info(event, **line)
            return
        self._strangers += 1  # one line in a while, for anybody can send them
        if anyio.current_time() >= self._quiet_until:
            log.warning(event or "api read", **line, requests=self._strangers)
            self._strangers, self._quiet_until = 0, anyio.current_time() + QUIET


def status(code: int, message: str, name: str = "", retry_after: int = 0) -> Json:
    """An error as API servers have it, so that kubectl prints it well."""
    details: Json = {"name": name, "group": GROUP, "kind": REMOTE_JOB.plural} if name else {}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": _REASONS.get(code, HTTPStatus(code).phrase.replace(" ", "")),
        **({"details": details} if details else {}),
        "code": code,
    }


def refusal(error: RefusedError, name: str = "") -> web.Response:
    """A refusal as API servers answer it."""
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after else {}
    response = as_json(status(error.code, str(error), name, error.retry_after), error.code, headers)
    if error.code in (401, 503):  # another connection may be believed
        response.force_close()
    return response


def as_json(body: Json, code: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """An answer."""
    return web.Response(status=code, body=orjson.dumps(body), content_type="application/json", headers=headers)


def fixed(body: bytes, media_type: str = "application/json") -> Handler:
    """Answers the same to everybody."""

    async def show(request: web.Request) -> web.StreamResponse:
        del request
        return web.Response(body=body, content_type=media_type, charset="utf-8")

    return show
