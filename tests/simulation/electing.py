"""Two daemons on one Lease: the way of each to the Lease, and the promise that one leads at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import anyio
import attrs

from multikueue.core.machinery.lease import LeaseSettings
from multikueue.core.model.kinds import LEASE
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import dig
from multikueue.errors import Unreachable
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from tests.simulation.session import Session

T = TypeVar("T")

LEASE_SETTINGS: Final = LeaseSettings()
MARGIN: Final = LEASE_SETTINGS.duration - LEASE_SETTINGS.renew_deadline
"""Seconds that a leader's work has to end in before another leads."""
ROUNDING: Final = 1e-6


@attrs.frozen
class LeaseWeather:
    """How bad the way of one daemon to the Lease is; its other requests do not notice."""

    slow: float = 0.0
    """Seconds between what a request does and its answer."""
    lost_requests: bool = False
    """Nothing arrives."""
    lost_replies: bool = False
    """Writes take effect, and are not answered."""


@attrs.define(eq=False)
class LeaseLine(Session):
    """A session that reads and writes the Lease."""

    lease_weather: LeaseWeather = LeaseWeather()

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        """See `Reader`."""
        return await self._slowly(lambda: Session.get(self, resource, key))

    async def create(self, resource: Resource, obj: Json) -> Json:
        """See `Writer`."""
        return await self._slowly(lambda: Session.create(self, resource, obj), writes=True)

    async def replace(self, resource: Resource, obj: Json, **options: Any) -> Json:
        """See `Writer`."""
        return await self._slowly(lambda: Session.replace(self, resource, obj, **options), writes=True)

    async def _slowly(self, act: Callable[[], Awaitable[T]], *, writes: bool = False) -> T:
        if self.lease_weather.lost_requests:
            raise Unreachable(f"{self.link.name}: lease: request lost")
        done = await act()
        await anyio.sleep(self.lease_weather.slow)
        if writes and self.lease_weather.lost_replies:
            await anyio.sleep_forever()
        return done


@attrs.define(eq=False)
class Terms:
    """Who leads, and what the one before did when it stopped."""

    broken: Callable[[str], None]
    changes: int = 0
    """How often another daemon took over."""
    line: LeaseLine | None = None
    """The leader's way to the Lease."""
    _leader: str = ""
    _last: str = ""
    _told_at: float = float("-inf")
    """When the last leader was told that it does not lead any more; minus infinity if it freed the Lease, or died."""

    def began(self, who: str, line: LeaseLine) -> None:
        """One begins to lead."""
        now = anyio.current_time()
        if self._leader:
            self.broken(f"{who} leads while {self._leader} does")
        elif who != self._last and now - self._told_at < MARGIN - ROUNDING:
            self.broken(
                f"{who} leads {now - self._told_at:.3f} s after {self._last} was told to stop, {MARGIN:g} s it is"
            )
        self.changes += self._last not in (who, "")
        self._leader, self._last, self.line = who, who, line

    def told_to_stop(self, *, lost: bool) -> None:
        """The leader is told to stop; whether that is because its Lease ran out."""
        self._told_at = anyio.current_time() if lost else float("-inf")

    def lease_changed(self, row: ResourceType, old: Json | None, new: Json | None) -> None:
        """One that frees the Lease has stopped, also if it was told to because its time ran out: nobody has to wait."""
        del old
        if row.plural == LEASE.plural and new is not None and not dig(new, "spec", "holderIdentity"):
            self._told_at = float("-inf")

    def ended(self, who: str) -> None:
        """It has stopped."""
        if self._leader == who:
            self._leader = ""
