"""From HTTP answers and broken connections to our errors: the one place where that is decided."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import aiohttp
import orjson
from aiohttp.http_exceptions import HttpProcessingError

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
_BY_REASON: Mapping[str, type[ApiError]] = {"AlreadyExists": AlreadyExists, "Expired": Expired, "Gone": Expired}
"""Where the reason says more than the status."""


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


@contextmanager
def translated(cluster: str, request: Request) -> Iterator[None]:
    """Turn what aiohttp and the system raise into our errors.

    Only to be put around aiohttp's calls: an OSError or TimeoutError of anything else would look like the network's.
    """
    begin = where(cluster, request)
    try:
        yield
    except TimeoutError as error:
        raise DeadlineExceeded(f"{begin}: no answer in time") from error
    except (aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError) as error:
        raise Unreachable(f"{begin}: the server's certificate is not trusted") from error
    except aiohttp.ClientConnectorError as error:
        raise Unreachable(f"{begin}: cannot connect: {error.os_error.strerror or error.os_error}") from error
    except aiohttp.ClientResponseError as error:  # a proxy's; it shows the proxy's URL, which may hold a password
        raise Unreachable(f"{begin}: the proxy or server answered {error.status}") from None
    except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError):
        raise Unreachable(f"{begin}: the server's address is not a URL") from None
    except HttpProcessingError:  # shows what it could not read, which may be a Secret
        raise Unreachable(f"{begin}: the answer is not HTTP, or a line of it is too long") from None
    except aiohttp.ClientPayloadError as error:
        raise Unreachable(f"{begin}: the connection broke in the middle of an answer") from error
    except (aiohttp.ClientError, OSError) as error:
        raise Unreachable(f"{begin}: {str(error) or type(error).__name__}") from error


def _retry_after(headers: Mapping[str, str]) -> float | None:
    value = headers.get("Retry-After", "")  # seconds, or a date that means nothing without the server's clock
    return float(value) if value.isascii() and value.isdecimal() else None
