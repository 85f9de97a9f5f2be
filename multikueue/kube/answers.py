"""From HTTP answers and broken connections to our errors: the one place where that is decided."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import aiohttp
import orjson

from multikueue.core.names import Json
from multikueue.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    DeadlineExceeded,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
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


def error_of(cluster: str, request: Request, status: int, body: bytes, headers: Mapping[str, str]) -> ApiError:
    """The error an answer means."""
    told = _status_body(body)
    reason = str(told.get("reason") or "")
    message = str(told.get("message") or f"HTTP {status}")
    return error_from_status(f"{cluster}: {request.verb} {request.resource}: {message}", status, reason, headers)


def error_from_status(message: str, status: int, reason: str, headers: Mapping[str, str] | None = None) -> ApiError:
    """The error for a status code and reason."""
    kind = _BY_STATUS.get(status, ServerFault if status >= 500 else ApiError)
    if reason == "AlreadyExists":
        kind = AlreadyExists
    if reason == "Expired":
        kind = Expired
    return kind(message, status=status, reason=reason, retry_after=_retry_after(headers or {}))


@contextmanager
def translated(cluster: str, request: Request) -> Iterator[None]:
    """Turn what aiohttp and the system raise into our errors, chained."""
    where = f"{cluster}: {request.verb} {request.resource}"
    try:
        yield
    except TimeoutError as error:
        raise DeadlineExceeded(f"{where}: no answer in time") from error
    except (aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError) as error:
        raise Unreachable(f"{where}: the server's certificate is not trusted") from error
    except aiohttp.ClientConnectorError as error:
        raise Unreachable(f"{where}: cannot connect: {error.os_error.strerror or error.os_error}") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise Unreachable(f"{where}: {_words(error)}") from error


def _words(error: Exception) -> str:
    if isinstance(error, aiohttp.InvalidURL):
        return "the server's address is not a URL"
    return str(error) or type(error).__name__


def _status_body(body: bytes) -> Json:
    try:
        told = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return told if isinstance(told, dict) else {}


def _retry_after(headers: Mapping[str, str]) -> float | None:
    value = headers.get("Retry-After", "")
    return float(value) if value.isdigit() else None
