"""Maps HTTP answers, and what aiohttp raises, to the errors of `multikueue.errors`."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import Final, NoReturn

import aiohttp
import attrs
import orjson

from multikueue import errors
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.core.model.outside_text import one_line
from multikueue.errors import ApiError, Cause
from multikueue.kube.http.requests import Request

MAX_MESSAGE: Final = 1024
"""The most characters of a server's words that an error repeats."""
_BY_STATUS: Mapping[int, type[ApiError]] = {
    **dict.fromkeys((400, 413, 415, 422), errors.Invalid),
    401: errors.Unauthorized,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
    410: errors.Expired,
    429: errors.TooManyRequests,
}
_BY_REASON: Mapping[str, type[ApiError]] = {
    "AlreadyExists": errors.AlreadyExists,
    "Expired": errors.Expired,
    "Gone": errors.Expired,
}
"""Reasons that are more specific than the status."""


def error_of(cluster: str, request: Request, status: int, body: bytes, headers: Mapping[str, str]) -> ApiError:
    """Map an HTTP answer to an error."""
    return error_of_status(where(cluster, request), decoded(body) or {}, status, headers, cluster=cluster)


def error_of_status(
    where: str, body: Json, code: int = 0, headers: Mapping[str, str] | None = None, *, cluster: str = ""
) -> ApiError:
    """Map a Status object to an error.

    Args:
        where: the beginning of the message: cluster, verb and resource.
        body: the Status, or another object if the answer held no Status.
        code: the HTTP status of the answer; 0: use the Status's own, as in an ERROR event of a watch.
        headers: of the answer.
        cluster: who answered.
    """
    named = body.get("code")
    status = code or (named if isinstance(named, int) else 0)
    reason, said = (one_line(str(body.get(field) or "")[:MAX_MESSAGE]) for field in ("reason", "message"))
    message = said or f"HTTP {status}"
    kind = _BY_REASON.get(reason) or _BY_STATUS.get(status) or (errors.ServerFault if status >= 500 else ApiError)
    if kind is errors.Invalid and _is_other_object(body):
        kind = errors.Conflict
    error = kind(f"{where}: {message}", status=status, reason=reason, retry_after=_retry_after(headers or {}))
    error.cluster, error.said = cluster, said
    if isinstance(error, errors.NotFound) and isinstance(details := body.get("details"), dict):
        error.name = str(details.get("name") or "")
    return error


def _is_other_object(body: Json) -> bool:
    """Whether a patch was refused because its UID is another object's: for all other verbs that is 409."""
    causes = dig(body, "details", "causes")
    return isinstance(causes, list) and any(dig(cause, "field") == "metadata.uid" for cause in causes)


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
        if isinstance(error, Exception) and not isinstance(error, errors.MultiKueueError):
            _raise_mapped(self.cluster, where(self.cluster, self.request), error)


def _raise_mapped(cluster: str, begin: str, error: Exception) -> NoReturn:
    """Raise our error for theirs. `from None` where theirs may quote a proxy's password or an object's content."""
    match error:
        case aiohttp.WSServerHandshakeError():
            raise error_of_status(begin, {}, error.status, error.headers, cluster=cluster) from None
        case aiohttp.ClientHttpProxyError():
            raise errors.Unreachable(f"{begin}: the proxy answered {error.status}") from None
        case aiohttp.ClientResponseError():
            raise errors.Unreachable(f"{begin}: the answer is not HTTP, or a line of it is too long") from None
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            raise errors.Unreachable(f"{begin}: the server's address is not a URL") from None
        case aiohttp.ConnectionTimeoutError():
            raise errors.NotSent(f"{begin}: cannot connect: no answer in time") from error
        case TimeoutError():
            raise errors.DeadlineExceeded(f"{begin}: no answer in time") from error
        case aiohttp.ClientConnectorCertificateError() | ssl.SSLCertVerificationError():
            why = "the server's certificate is not trusted"
            raise errors.NotSent(f"{begin}: {why}", cause=Cause.CERTIFICATE) from error
        case aiohttp.ClientConnectorError():
            reason = error.os_error.strerror or error.os_error
            cause = Cause.HOST_NAME if isinstance(error, aiohttp.ClientConnectorDNSError) else None
            raise errors.NotSent(f"{begin}: cannot connect: {reason}", cause=cause) from error
        case aiohttp.ClientPayloadError():
            raise errors.Unreachable(f"{begin}: the connection broke in the middle of an answer") from error
        case aiohttp.ClientError() | OSError():
            raise errors.Unreachable(f"{begin}: {str(error) or type(error).__name__}") from error
        case RuntimeError() if type(error) is RuntimeError:
            # of the event loop, as that a file descriptor is in use: no other word tells which
            raise errors.Unreachable(f"{begin}: the event loop refuses it: {error}") from error
        case _:  # a UnicodeError for a host name, a ValueError for an address: their texts may quote a credential
            raise errors.Unreachable(f"{begin}: the request cannot be made ({type(error).__name__})") from error


def _retry_after(headers: Mapping[str, str]) -> float | None:
    value = headers.get("Retry-After", "")  # or a date, which means nothing without the server's clock
    return float(value) if value.isascii() and value.isdecimal() else None
