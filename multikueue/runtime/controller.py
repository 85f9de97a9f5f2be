"""A controller: sources put keys into its queue, workers take them out and reconcile."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, Generic, Protocol, TypeVar

import anyio
import anyio.abc
import attrs
import structlog

from multikueue.core.machinery.action import Action
from multikueue.core.machinery.backoff import ITEM_BACKOFF, Backoff
from multikueue.core.machinery.queue import QueueStatistics, WorkQueue
from multikueue.errors import ApiError, Conflict
from multikueue.logs import get_logger
from multikueue.runtime.clock import loop_time

K = TypeVar("K", bound=Hashable)
K_contra = TypeVar("K_contra", bound=Hashable, contravariant=True)

CONFLICT_PATIENCE: Final = 1.0
"""Seconds until a write that met a newer object is tried again, if nothing is heard of that object meanwhile."""

log = get_logger(__name__)


class Reconciler(Protocol[K_contra]):
    """Brings the world closer to what the object named by a key asks for.

    Level-based: it looks at what is, not at what happened, and may be called at any time, any number of times.
    It is never called for one key twice at once.
    """

    async def reconcile(self, key: K_contra) -> Action:
        """Do what is needed now and say when to look again. A raised error is retried with back-off."""
        ...


class ControllerHook(Protocol):
    """Sees every reconcile, for metrics."""

    def reconciled(self, controller: str, seconds: float, error: Exception | None) -> None:
        """One reconcile ended, after `seconds`."""
        ...


@attrs.define(eq=False)
class Controller(Generic[K]):
    """Runs a reconciler for the keys it is given, `concurrency` of them at a time.

    A reconcile that fails is retried alone, with exponential back-off; it never disturbs other keys.
    """

    name: str
    reconciler: Reconciler[K]
    concurrency: int = attrs.field(default=1, kw_only=True)
    """Reconciles at a time. They are await-heavy, so this bounds calls in flight, not threads."""
    backoff: Backoff = attrs.field(default=ITEM_BACKOFF, kw_only=True)
    fraction: Callable[[], float] = attrs.field(kw_only=True, default=lambda: 0.0)
    """Where the jitter of the back-off comes from: numbers in [0, 1)."""
    hook: ControllerHook | None = attrs.field(default=None, kw_only=True)
    _queue: WorkQueue[K] = attrs.field(factory=WorkQueue, init=False)
    _failures: dict[K, int] = attrs.field(factory=dict, init=False)
    _wakeup: anyio.Event = attrs.field(factory=anyio.Event, init=False)
    _draining: bool = attrs.field(default=False, init=False)

    def enqueue(self, key: K, after: float = 0.0) -> None:
        """Have `key` reconciled in `after` seconds; of several requests the earliest counts."""
        self._queue.add(key, loop_time() + after)
        self._wakeup.set()

    async def run(self) -> None:
        """Reconcile until cancelled, or until `drain` was called and nothing is under way."""
        async with anyio.create_task_group() as tasks:
            while not self._draining or self._queue.held:
                self._start_due(tasks)
                await self._wait_for_work()

    def drain(self) -> None:
        """Start nothing new, let what is under way end, then end `run`."""
        self._draining = True
        self._wakeup.set()

    def statistics(self) -> QueueStatistics:
        """How many keys wait and how many are being reconciled."""
        return self._queue.statistics()

    @property
    def idle(self) -> bool:
        """Whether nothing is due and nothing is being reconciled."""
        statistics = self._queue.statistics()
        due = self._queue.next_due()
        return statistics.held == 0 and (due is None or due > loop_time())

    def _start_due(self, tasks: anyio.abc.TaskGroup) -> None:
        while not self._draining and self._queue.held < self.concurrency:
            key = self._queue.take(loop_time())
            if key is None:
                return
            tasks.start_soon(self._work, key)

    async def _work(self, key: K) -> None:
        try:
            await self._reconcile(key)
        finally:
            self._queue.release(key)
            self._wakeup.set()

    async def _wait_for_work(self) -> None:
        # NO await between looking at the queue and waiting: an enqueue in between would be missed.
        full = self._queue.held >= self.concurrency
        due = None if full or self._draining else self._queue.next_due()
        if self._wakeup.is_set():
            self._wakeup = anyio.Event()
        timeout = None if due is None else max(0.0, due - loop_time())
        with anyio.move_on_after(timeout):
            await self._wakeup.wait()

    async def _reconcile(self, key: K) -> None:
        started = loop_time()
        error: Exception | None = None
        try:
            with structlog.contextvars.bound_contextvars(controller=self.name, key=str(key)):
                action = await self.reconciler.reconcile(key)
        except Exception as failure:  # one key's failure is that key's alone (never CancelledError)
            error = failure
            self._retry(key, failure)
        else:
            self._failures.pop(key, None)
            if action.delay is not None:
                self.enqueue(key, action.delay)
        if self.hook is not None:
            self.hook.reconciled(self.name, loop_time() - started, error)

    def _retry(self, key: K, failure: Exception) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = self.backoff.delay(failures, self.fraction())
        if isinstance(failure, Conflict):
            # Somebody else wrote first. Their change is on its way to us and brings us back; until it is here, the
            # same write would be refused again, and a server that is behind already would have one more to refuse.
            delay = max(delay, CONFLICT_PATIENCE)
            log.debug("conflict", controller=self.name, key=str(key), error=str(failure))
        elif isinstance(failure, ApiError):
            delay = max(delay, failure.retry_after or 0.0)
            log.info("retry", controller=self.name, key=str(key), error=str(failure), seconds=round(delay, 3))
        else:
            log.error("reconcile failed", controller=self.name, key=str(key), exc_info=failure)
        self.enqueue(key, delay)
