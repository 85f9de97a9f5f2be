"""Which cluster a server is: by the UID of the namespace `kube-system`, which each has, and keeps.

A MultiKueueCluster may lead to the manager itself, by another address and as somebody else. That changes what copies
may be called, so it is known before the worker counts as connected. It costs one request per connection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import anyio
import attrs

from multikueue.core.model.kinds import NAMESPACE
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import uid
from multikueue.errors import ApiError
from multikueue.protocols import Reader

KUBE_SYSTEM: Final = ObjectKey("", "kube-system")
INTERVAL: Final = 10.0
"""Seconds until a server is asked again that did not answer."""
DEADLINE: Final = 10.0
"""Seconds for both sides' answers: the worker counts as connected then, and gets nothing while its own is missing."""


async def cluster_uid(server: Reader) -> str:
    """What tells a cluster from all others.

    Raises:
        ApiError: it cannot be read, or may not be.
    """
    return uid(await server.get(NAMESPACE, KUBE_SYSTEM))


@attrs.define(eq=False)
class ManagerIdentity:
    """The manager's own UID, read once."""

    client: Reader = attrs.field(repr=False)
    _uid: str = attrs.field(default="", init=False)
    _asking: anyio.Lock = attrs.field(factory=anyio.Lock, init=False, repr=False)

    async def uid(self) -> str:
        """The UID.

        Raises:
            ApiError: it cannot be read, or may not be.
        """
        async with self._asking:
            self._uid = self._uid or await cluster_uid(self.client)
        return self._uid


@attrs.define(eq=False)
class IdentityCheck:
    """Which cluster one worker is, and whether that is the manager."""

    client: Reader = attrs.field(repr=False)
    manager: ManagerIdentity
    on_change: Callable[[], None]
    """Called when more is known."""
    is_manager: bool | None = attrs.field(default=None, init=False)
    """None: it is not known, or one of the two may not be asked."""
    uid: str = attrs.field(default="", init=False)
    """The worker's own; empty: it is not known."""
    asked: bool = attrs.field(default=False, init=False)
    """Whether there was an answer, or a failure."""
    answered: bool = attrs.field(default=False, init=False)
    """Whether no more will be known: both have answered, or one may not be asked."""

    @property
    def is_settled(self) -> bool:
        """Whether it is known which cluster it is, or that it may not be asked. Before that it gets nothing."""
        return bool(self.uid) or self.answered

    @property
    def may_be_manager(self) -> bool:
        """Whether it is the manager itself, or nobody knows yet."""
        return not self.answered if self.is_manager is None else self.is_manager

    @property
    def known(self) -> tuple[object, ...]:
        """All that is known."""
        return self.is_manager, self.uid, self.answered

    async def run(self, connected: Callable[[], Awaitable[None]]) -> None:
        """Ask once, and again while there is no answer. A refusal is one.

        Args:
            connected: waits until the worker answers.
        """
        await connected()
        await self._look()
        while not self.answered:
            await anyio.sleep(INTERVAL)
            await self._look()

    def inherit(self, earlier: IdentityCheck) -> None:
        """Know what an earlier connection to the same server knew: this one's credentials may not be allowed to ask."""
        if not self.uid:
            self.uid, self.is_manager = earlier.uid, earlier.is_manager

    async def _look(self) -> None:
        with anyio.move_on_after(DEADLINE):
            try:
                self.uid = await cluster_uid(self.client)
                self.is_manager = self.uid == await self.manager.uid()
                self.answered = True
            except ApiError as error:
                self.answered = not error.retryable
        self.asked = True
        self.on_change()
