"""From the server's refusals to the library's errors, for clients without HTTP."""

from __future__ import annotations

from multikueue.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    ServerFault,
    TooManyRequests,
    Unauthorized,
)
from multikueue.sandbox.apiserver.verbs.statuses import StatusError

_ERRORS: dict[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    429: TooManyRequests,
}


def to_error(status: StatusError) -> ApiError:
    """The library's error for a refusal."""
    kind = _ERRORS.get(status.code) or (ServerFault if status.code >= 500 else Invalid)
    if status.reason == "AlreadyExists":
        kind = AlreadyExists
    wait = status.headers.get("Retry-After")
    return kind(status.message, status=status.code, reason=status.reason, retry_after=float(wait) if wait else None)
