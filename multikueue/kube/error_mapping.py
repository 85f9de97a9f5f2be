"""From HTTP answers and broken connections to our errors: the one place where that is decided."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import Final

import aiohttp
import attrs
import orjson
from aiohttp.http_exceptions import HttpProcessingError

from multikueue.core.model.names import Json
from multikueue.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    DeadlineExceeded,
    Expired,
    Forbidden,
    Invalid,
    MultiKueueError,
    NotFound,
    NotSent,
    ServerFault,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from multikueue.kube.requests import Request

_BY_STATUS: Mapping[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: TooManyRequests,
}
_BY_REASON: Mapping[str, type[ApiError]] = {"AlreadyExists": AlreadyExists, "Expired": Expired, "Gone": Expired}
"""Where the reason says more than the status."""


_REVEALING: Final = (
    aiohttp.ClientResponseError,
    HttpProcessingError,
    aiohttp.InvalidURL,
    aiohttp.NonHttpUrlClientError,
)
"""Errors that show what they are about."""


def error_of(cluster: str, request: Request, status: int, body: bytes, headers: Mapping[str, str]) -> ApiError:
    """The error an answer means."""
    return error_of_status(where(cluster, request), decoded(body) or {}, status, headers)


def error_of_status(where: str, told: Json, code: int = 0, headers: Mapping[str, str] | None = None) -> ApiError:
    """The error a Status object means.

    Args:
        where: begins the message: who was asked for what.
        told: the Status; any other object if the answer held none.
        code: the answer's HTTP status; 0: that of the Status, as in a watch.
        headers: the answer's.
    """
    named = told.get("code")
    status = code or (named if isinstance(named, int) else 0)
    reason, message = str(told.get("reason") or ""), str(told.get("message") or f"HTTP {status}")
    kind = _BY_REASON.get(reason) or _BY_STATUS.get(status) or (ServerFault if status >= 500 else ApiError)
    return kind(f"{where}: {message}", status=status, reason=reason, retry_after=_retry_after(headers or {}))


def decoded(body: bytes) -> Json | None:
    """The object an answer holds; None if it is none."""
    try:
        told = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return told if isinstance(told, dict) else None


def where(cluster: str, request: Request) -> str:
    """Who was asked for what: the beginning of every message."""
    return f"{cluster}: {request.verb} {request.resource}"


@attrs.define(eq=False)
class Translated:
    """Turns what aiohttp and the system raise into our errors; a context manager, to be used any number of times.

    Only to be put around aiohttp's calls: an OSError or TimeoutError of anything else would look like the network's.
    A class, and no generator: it is around every request and every line of a watch.
    """

    cluster: str
    request: Request

    def __enter__(self) -> None:
        """Nothing is done before an error."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Raise our error for theirs.

        Raises:
            ApiError: what theirs means.
        """
        if isinstance(error, Exception):
            begin = where(self.cluster, self.request)
            if isinstance(error, _REVEALING):
                raise Unreachable(f"{begin}: {_without_content(error)}") from None
            if not isinstance(error, MultiKueueError):
                raise _translation(begin, error) from error


def _without_content(error: Exception) -> str:
    """What is said of an error that shows what nobody may see: a proxy's URL with its password, or a Secret."""
    if isinstance(error, aiohttp.ClientResponseError):  # a proxy's
        return f"the proxy or server answered {error.status}"
    if isinstance(error, HttpProcessingError):
        return "the answer is not HTTP, or a line of it is too long"
    return "the server's address is not a URL"


def _translation(begin: str, error: Exception) -> ApiError:
    match error:
        case TimeoutError():
            return DeadlineExceeded(f"{begin}: no answer in time")
        case aiohttp.ClientConnectorCertificateError() | ssl.SSLCertVerificationError():
            return NotSent(f"{begin}: the server's certificate is not trusted")
        case aiohttp.ClientConnectorError():
            return NotSent(f"{begin}: cannot connect: {error.os_error.strerror or error.os_error}")
        case aiohttp.ClientPayloadError():
            return Unreachable(f"{begin}: the connection broke in the middle of an answer")
        case aiohttp.ClientError() | OSError():
            return Unreachable(f"{begin}: {str(error) or type(error).__name__}")
        case _:  # a UnicodeError for a host name, a ValueError for an address, ...: their texts may quote a credential
            return Unreachable(f"{begin}: the request cannot be made ({type(error).__name__})")


def _retry_after(headers: Mapping[str, str]) -> float | None:
    value = headers.get("Retry-After", "")  # seconds, or a date that means nothing without the server's clock
    return float(value) if value.isascii() and value.isdecimal() else None
