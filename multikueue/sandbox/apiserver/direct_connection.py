"""What carries a call in memory: its connection, which can be cut, the sink of a watch, and the errors it raises."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio
import attrs

from multikueue.core.model.names import Json
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
from multikueue.protocols import WatchEvent
from multikueue.sandbox.apiserver.encoding import decode
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.apiserver.status_errors import StatusError
from multikueue.sandbox.apiserver.storage.watching import Emission

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
    error = kind(status.message, status=status.code, reason=status.reason, retry_after=float(wait) if wait else None)
    if isinstance(error, NotFound):
        error.name = (status.details or {}).get("name", "")
    return error


@attrs.define(eq=False)
class Connection:
    """The connection of one call: it can be cut, and it has a deadline that moves with `answered`."""

    silence: float
    scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)
    cut: bool = False

    def drop(self) -> None:
        """Reset the connection."""
        self.cut = True
        self.scope.cancel()

    def answered(self) -> None:
        """Move the deadline: the server has said something."""
        self.scope.deadline = anyio.current_time() + self.silence


@attrs.define(eq=False)
class CallbackSink:
    """Hands watch lines to a callback."""

    _row: ResourceType
    _on_event: Callable[[WatchEvent], None]
    _connection: Connection

    async def events(self, emissions: Sequence[Emission]) -> None:
        """Hand events over."""
        self._connection.answered()
        for emission in emissions:
            raw = emission.entry.raw
            self._on_event(WatchEvent(emission.type, self._row.viewed(decode(raw)), len(raw)))

    async def bookmark(self, revision: int, *, initial_end: bool) -> None:
        """Hand a bookmark over."""
        self._connection.answered()
        metadata: Json = {"resourceVersion": str(revision)}
        row = self._row
        body = {"kind": row.kind, "apiVersion": row.api_version, "metadata": metadata}
        self._on_event(WatchEvent("BOOKMARK", body))

    async def failure(self, error: StatusError) -> None:
        """End the watch with the library's error."""
        raise to_error(error)
