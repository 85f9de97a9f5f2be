"""When a server was heard last."""

from __future__ import annotations

import asyncio
import math
from typing import Final

import attrs

from multikueue.errors import ApiError, Unreadable
from multikueue.protocols import WatchEvent

UNAVAILABLE: Final = frozenset({502, 503, 504})
"""A proxy says this of a server that does not answer it, and an API server of storage that does not."""


@attrs.define(eq=False)
class Activity:
    """Notes answers, refusals and those that are too much to read included, and events of watches.

    Not bookmarks, nor that a watch was accepted: an API server does both from memory, while its storage may hang.
    """

    last: float = attrs.field(default=-math.inf, init=False)
    """On the loop's clock; -inf: never."""

    def __enter__(self) -> None:
        """Around a request."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.answered()
        elif isinstance(error, ApiError):
            self.failed(error)

    def answered(self) -> None:
        """A request was answered."""
        self.last = asyncio.get_running_loop().time()

    def failed(self, error: ApiError) -> None:
        """A request or a watch failed."""
        if isinstance(error, Unreadable) or (error.status and error.status not in UNAVAILABLE):
            self.answered()

    def sent(self, event: WatchEvent) -> None:
        """A watch has shown an event."""
        if event.type != "BOOKMARK":
            self.answered()
