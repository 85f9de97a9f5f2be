"""The time that one call may take: one bound for its wait for a connection, and a deadline from when it is sent."""

from __future__ import annotations

import anyio
import attrs


@attrs.define(eq=False)
class CallTime:
    """The time of one call. Its tries share the deadline; each may wait for a connection.

    A client has a limited number of connections, so with thousands of calls most wait, however fast the server is.
    That says nothing about the server, and a call that has only waited cannot have had an effect.
    """

    deadline: float
    """Seconds for the server, in all tries."""
    wait: float
    """Seconds until a try has a token and a connection, the lookup of the name and TLS included."""
    sent: bool = attrs.field(default=False, init=False)
    """Whether the current try had a connection: the server may have got it."""
    scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope, init=False)
    _left: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._left = self.deadline
        self.scope.deadline = anyio.current_time() + self.wait

    def waits(self) -> None:
        """The next try begins: the deadline stands still until it has a connection."""
        if self.sent:
            self._left = self.scope.deadline - anyio.current_time()
            self.scope.deadline = anyio.current_time() + self.wait
        self.sent = False

    def has_connection(self) -> None:
        """The try has a connection, and is about to be sent: perhaps again, since the first connection broke."""
        if self.sent:
            return
        self.sent = True
        self.scope.deadline = anyio.current_time() + self._left
