"""The time in which a process leads: from its election until it loses the Lease, or from start to end.

Garbage is not collected while its caches are filled.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio
import attrs
import structlog

from multikueue.runtime.election import Elector
from multikueue.runtime.manager import Manager
from multikueued.metrics.hooks import Metrics

if TYPE_CHECKING:
    from multikueued.webhook.run import Webhook

DRAIN_TIMEOUT: Final = 10.0
"""Seconds that work under way may take after SIGTERM; then it is cancelled."""

ADVICE: Final = "grant what multikueue rbac manager prints"
SOON: Final = 5.0
"""Seconds between two looks whether the Lease may be held."""
AGAIN: Final = 60.0
"""Seconds after which it is told again that it may not."""

Beside: TypeAlias = Callable[[Manager], Coroutine[Any, Any, None]]
"""What a leader does beside dispatching."""

log = structlog.get_logger(__name__)


@attrs.define(eq=False)
class Leadership:
    """The time in which this process leads: from its election until it loses the Lease, or from start to end."""

    elected: bool
    """Whether there is leader election: before a term this process is a standby."""
    elector: Elector | None = None
    """Who holds the Lease for this process."""
    manager: Manager | None = None
    working: bool = False
    """Whether the manager has started to reconcile: before that nothing is under way."""
    _ended: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    async def drain(self) -> None:
        """Let the manager finish what is under way, for `DRAIN_TIMEOUT`."""
        if self.manager is None or not self.working:
            return
        self.manager.drain()
        with anyio.move_on_after(DRAIN_TIMEOUT):
            await self._ended.wait()

    async def lead(
        self, manager: Manager, metrics: Metrics, webhook: Webhook | None, beside_it: Beside | None = None
    ) -> None:
        """Run the manager, what it does beside dispatching, and register the webhook until cancelled."""
        self.manager, self._ended = manager, anyio.Event()
        cluster = manager.cluster
        metrics.began(manager.statistics, cluster.worker_statuses, cluster.counts, manager.starving)
        try:
            async with anyio.create_task_group() as beside:
                if webhook is not None:
                    beside.start_soon(webhook.registrar.run)
                async with anyio.create_task_group() as tasks:
                    await tasks.start(manager.run)
                    self.working = True
                    freeze()
                    plan = manager.settings.plan
                    log.info("working", controller=plan.controller_name, origin=plan.origin)
                    if beside_it is not None:
                        beside.start_soon(beside_it, manager)
                beside.cancel_scope.cancel()
        finally:
            self.manager, self.working = None, False
            self._ended.set()
            metrics.ended()

    async def while_told(self, elected: Callable[[], Awaitable[None]]) -> None:
        """Run the election; beside it log each minute that this process may not hold the Lease, if it may not."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._tell_refusals)
            await elected()
            tasks.cancel_scope.cancel()

    async def _tell_refusals(self) -> None:
        while True:
            await anyio.sleep(SOON)
            if self.elector is not None and self.elector.refused:
                why = self.elector.refused
                log.warning("nothing is dispatched", lease=str(self.elector.key), error=why, advice=ADVICE)
                await anyio.sleep(AGAIN - SOON)

    def why_not_ready(self) -> str | None:
        """What readiness waits for; None: ready. A standby is ready."""
        if self.manager is None and self.elector is not None and self.elector.refused:
            return f"{self.elector.refused}: {ADVICE}"
        if self.manager is None:
            return None if self.elected else "starting"
        unread = ", ".join(str(resource) for resource in self.manager.cluster.unread)
        return f"the manager cluster's objects are not all read yet: {unread}" if unread else None


LONG: Final = 60.0
"""Seconds for which it can wait: requests that fail leave garbage."""


@contextmanager
def collected_rarely() -> Iterator[None]:
    """With thresholds for millions of objects: reading a big list would spend three quarters of its time in the
    collector. Whoever runs a daemon in a process of their own gets theirs back."""
    thresholds = gc.get_threshold()
    gc.set_threshold(50_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


@contextmanager
def postponed() -> Iterator[None]:
    """Collect nothing until `freeze`, or the block ends, but for `LONG` seconds at most.

    What is made while caches are filled lasts: to look at it took a tenth of a start over many Workloads.
    """
    gc.disable()
    due = asyncio.get_running_loop().call_later(LONG, gc.enable)
    try:
        yield
    finally:
        due.cancel()
        gc.enable()


def freeze() -> None:
    """Exempt the objects in the caches from garbage collection: a full one stops the loop for a second.

    What was exempt before is looked at first: the caches of an earlier term are garbage.
    """
    if gc.get_freeze_count():
        gc.unfreeze()
        gc.collect()
    gc.freeze()
    gc.enable()
