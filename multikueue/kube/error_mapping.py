"""Maps HTTP answers, and what aiohttp raises, to the errors of `multikueue.errors`."""

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
"""Reasons that are more specific than the status."""

_REVEALING: Final = (
    aiohttp.ClientResponseError,
    HttpProcessingError,
    aiohttp.InvalidURL,
    aiohttp.NonHttpUrlClientError,
)
"""Errors whose texts may show a secret: the password in a proxy's URL, or an object's content."""


def error_of(cluster: str, request: Request, status: int, body: bytes, headers: Mapping[str, str]) -> ApiError:
    """Map an HTTP answer to an error."""
    return error_of_status(where(cluster, request), decoded(body) or {}, status, headers)


def error_of_status(where: str, body: Json, code: int = 0, headers: Mapping[str, str] | None = None) -> ApiError:
    """Map a Status object to an error.

    Args:
        where: the beginning of the message: cluster, verb and resource.
        body: the Status, or another object if the answer held no Status.
        code: the HTTP status of the answer; 0: use the Status's own, as in an ERROR event of a watch.
        headers: of the answer.
    """
    named = body.get("code")
    status = code or (named if isinstance(named, int) else 0)
    reason, message = str(body.get("reason") or ""), str(body.get("message") or f"HTTP {status}")
    kind = _BY_REASON.get(reason) or _BY_STATUS.get(status) or (ServerFault if status >= 500 else ApiError)
    return kind(f"{where}: {message}", status=status, reason=reason, retry_after=_retry_after(headers or {}))


def decoded(body: bytes) -> Json | None:
    """The JSON object of an answer; None if the answer is anything else."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def where(cluster: str, request: Request) -> str:
    """Cluster, verb and resource: the beginning of every message."""
    return f"{cluster}: {request.verb} {request.resource}"


@attrs.define(eq=False)
class ErrorMapping:
    """Maps what aiohttp and the system raise to our errors. A context manager that can be used any number of times.

    Use it only around aiohttp's calls: it takes every OSError and TimeoutError for the network's. It is a class and not
    a generator because it surrounds every request and every line of a watch, and a class is faster.
    """

    cluster: str
    request: Request

    def __enter__(self) -> None:
        """Do nothing: only the exit matters."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Raise our error for theirs.

        Raises:
            ApiError: the mapped error.
        """
        if isinstance(error, Exception) and not isinstance(error, MultiKueueError):
            cause = None if isinstance(error, _REVEALING) else error
            raise _mapped(where(self.cluster, self.request), error) from cause


def _mapped(begin: str, error: Exception) -> ApiError:
    match error:
        case aiohttp.ClientResponseError():  # a proxy's
            return Unreachable(f"{begin}: the proxy or server answered {error.status}")
        case HttpProcessingError():
            return Unreachable(f"{begin}: the answer is not HTTP, or a line of it is too long")
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return Unreachable(f"{begin}: the server's address is not a URL")
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
        case _:  # a UnicodeError for a host name, a ValueError for an address: their texts may quote a credential
            return Unreachable(f"{begin}: the request cannot be made ({type(error).__name__})")


def _retry_after(headers: Mapping[str, str]) -> float | None:
    value = headers.get("Retry-After", "")  # or a date, which means nothing without the server's clock
    return float(value) if value.isascii() and value.isdecimal() else None
