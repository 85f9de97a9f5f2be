"""Leader election: leadership as a lifetime, decided by `multikueue.core.machinery.lease`."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Protocol

import anyio
import attrs

from multikueue.core.machinery.lease import LeaseAction, LeaseCandidate, LeaseSettings
from multikueue.core.model.kinds import LEASE
from multikueue.core.model.names import ObjectKey
from multikueue.errors import AlreadyExists, ApiError, Conflict, Forbidden, NotFound
from multikueue.logs import get_logger
from multikueue.protocols import Reader, Writer

RELEASE_TIMEOUT = 3.0
"""Seconds the release may take. Without it the next leader only waits for the Lease to expire."""

log = get_logger(__name__)


class LeaseClient(Reader, Writer, Protocol):
    """What election needs from the API server."""


@attrs.define(eq=False, repr=False)
class Elector:
    """Runs `lead` while, and only while, this process holds the Lease.

    `lead` is cancelled before another process may lead, with `duration - renew_deadline` seconds to end in. While it
    ends because the caller cancelled `run`, the Lease is still renewed.

    Raises:
        SettingsError: the identity is empty.
    """

    client: LeaseClient
    key: ObjectKey
    """The Lease. It is made if there is none."""
    identity: str
    """Of this process, and of no other one."""
    settings: LeaseSettings
    clock: Callable[[], datetime]
    """The wall clock, for the times in the Lease: who leads is not decided by them."""
    fraction: Callable[[], float] = attrs.field(default=lambda: 0.0, kw_only=True)
    """The source of jitter: numbers in [0, 1)."""
    leading: bool = attrs.field(default=False, init=False)
    """Whether `lead` is running."""
    led_until: datetime | None = attrs.field(default=None, init=False)
    """When a leader had renewed the Lease last before this process acquired it, by that leader's wall clock; None:
    nobody had. `lead` may ask how long nobody was at work."""
    refused: str = attrs.field(default="", init=False)
    """Why this process may not hold the Lease: it lacks a permission; empty: nobody has said so."""
    _candidate: LeaseCandidate = attrs.field(init=False)
    _stopped: datetime | None = attrs.field(default=None, init=False)
    """When this process led last."""
    _tried: bool = attrs.field(default=False, init=False)
    """Whether the Lease may name this process."""
    _complaint: str = attrs.field(default="", init=False)
    _waited_for: str = attrs.field(default="", init=False)
    """The other leader that was logged last."""

    @_candidate.default
    def _of_settings(self) -> LeaseCandidate:
        return LeaseCandidate(self.key, self.identity, self.settings)

    def __repr__(self) -> str:
        holder = "leading" if self.leading else f"led by {self._candidate.holder or 'nobody'}"
        return f"<Elector {self.identity} for {self.key}: {holder}>"

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait for leadership, run `lead`, and wait again if leadership is lost; return when `lead` does.

        However it ends, the Lease is released, so that another process leads at once.

        Raises:
            ExceptionGroup: what `lead` raised.
        """
        try:
            while True:
                await self._acquire()
                log.info("leading", lease=str(self.key), identity=self.identity)
                if await self._lead(lead):
                    return
                log.warning("leadership lost", lease=str(self.key), identity=self.identity)
        finally:
            await self._release()

    async def _acquire(self) -> None:
        while True:
            if await self._attempt():
                self._waited_for = ""
                return
            self._log_leader()
            await anyio.sleep(self._candidate.retry_delay(self.fraction()))

    async def _lead(self, lead: Callable[[], Awaitable[None]]) -> bool:
        """Run `lead` while the Lease can be renewed; tell whether it returned by itself."""
        term = anyio.CancelScope()
        # Shielded: while `lead` ends because the caller cancelled it, the Lease must not run out.
        renewing = anyio.CancelScope(shield=True)
        async with anyio.create_task_group() as tasks:
            self.leading = True
            tasks.start_soon(self._renew, renewing, term)
            try:
                with term:
                    await lead()
            finally:
                self.leading, self._stopped = False, self.clock()
                renewing.cancel()
        return not term.cancelled_caught

    async def _renew(self, renewing: anyio.CancelScope, term: anyio.CancelScope) -> None:
        with renewing:
            while self._candidate.leads_until > anyio.current_time():
                with anyio.CancelScope(deadline=self._candidate.leads_until):
                    await anyio.sleep(self.settings.retry_period)
                    await self._attempt()
            term.cancel()

    async def _attempt(self) -> bool:
        """Acquire or renew once; tell whether that succeeded."""
        try:
            with anyio.fail_after(self.settings.renew_deadline / 2):
                held = await self._hold()
        except (ApiError, TimeoutError) as error:
            self.refused = str(error) if isinstance(error, Forbidden) else ""
            self._complain(str(error) or "no answer in time")
            return False
        self._complaint = self.refused = ""
        return held

    async def _hold(self) -> bool:
        if not self.leading:
            await self._look()
        # A leader writes without reading; after a conflict it reads the Lease, and may still be the leader.
        for last in (False, True):
            if self._candidate.decide(anyio.current_time()) is LeaseAction.WAIT:
                return False
            try:
                await self._write()
            except (Conflict, AlreadyExists, NotFound):
                if last:
                    raise
                await self._look()
            else:
                return True
        return False

    async def _look(self) -> None:
        lease = None
        with contextlib.suppress(NotFound):
            lease = await self.client.get(LEASE, self.key)
        self._candidate.observe(lease, anyio.current_time())

    async def _write(self) -> None:
        began, led_until = anyio.current_time(), self._candidate.led_until
        lease = self._candidate.next_lease(self.clock(), leading=self.leading)
        self._tried = True
        if lease["metadata"].get("resourceVersion"):
            written = await self.client.replace(LEASE, lease)
        else:
            written = await self.client.create(LEASE, lease)
        self._candidate.wrote(written, began)
        if not self.leading:
            self.led_until = led_until

    async def _release(self) -> None:
        if not self._tried:
            return
        with anyio.move_on_after(RELEASE_TIMEOUT, shield=True):
            try:
                await self._look()  # the outcome of the last write may be unknown
                if self._candidate.decide(anyio.current_time()) is LeaseAction.RENEW:
                    released = self._candidate.released_lease(self.clock(), self._stopped)
                    self._candidate.observe(await self.client.replace(LEASE, released), anyio.current_time())
            except ApiError as error:
                log.info("lease not released", lease=str(self.key), error=str(error))

    def _log_leader(self) -> None:
        """Log who leads instead of this process, once per leader."""
        holder = self._candidate.holder
        if holder not in ("", self.identity, self._waited_for):
            self._waited_for = holder
            log.info("standing by", lease=str(self.key), identity=self.identity, leader=holder)

    def _complain(self, complaint: str) -> None:
        """Log an error, once until it changes."""
        if complaint != self._complaint:
            self._complaint = complaint
            log.warning("cannot hold the lease", lease=str(self.key), error=complaint)
