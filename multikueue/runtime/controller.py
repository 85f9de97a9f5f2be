"""A controller: event handlers put keys into its queue, and it calls a reconciler for them.

Controllers, and what runs beside them, are the parts of a manager.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import datetime
from typing import Final, Generic, TypeVar

import anyio
import anyio.lowlevel
import attrs
import structlog

from multikueue.core.functions import fault_of
from multikueue.core.machinery.action import Action, seconds_to_wait
from multikueue.core.machinery.backoff import ITEM_BACKOFF, Backoff
from multikueue.core.machinery.queue import ChargedQueue, QueueStatistics
from multikueue.core.model.names import ObjectKey
from multikueue.errors import ApiError, Conflict
from multikueue.hooks import unfailing
from multikueue.logs import get_logger
from multikueue.protocols import ControllerHook, Reconciler
from multikueue.runtime.loop import loop_time, own_cancellation

K = TypeVar("K", bound=Hashable)

CONFLICT_DELAY: Final = 1.0
"""Seconds until a write is retried that failed with a conflict, unless an event of the object comes first."""
IN_ONE_TURN: Final = 4
"""Reconciles that begin in one turn of the loop, in which ten events of each watch are read. With 28 it was 5 s until
another tenant's event was read. A turn costs something, too; with four, a burst takes as much CPU as with 28."""

log = get_logger(__name__)


@attrs.define(eq=False, repr=False)
class KeyQueue(Generic[K]):
    """A `ChargedQueue` on the loop's clock. Anybody may add keys; one controller takes them out."""

    _keys: ChargedQueue[K] = attrs.field(factory=ChargedQueue)
    _wakeup: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    def __repr__(self) -> str:
        return f"<KeyQueue: {len(self._keys)} waiting, {self.held} held>"

    def enqueue(self, key: K, after: float = 0.0, cause: Hashable = None) -> bool:
        """Make `key` due in `after` seconds; of several times the earliest counts.

        Args:
            key: what is to be looked at.
            after: seconds.
            cause: at whose expense, if it is not here yet.

        Returns:
            Whether it is here now; False beyond the queue's limit for one cause.

        Raises:
            TypeError: the time is no number.
            ValueError: it is nan.
        """
        at = loop_time() + seconds_to_wait(after)
        if cause is None:
            self._keys.add(key, at)
        elif not self._keys.charge(key, at, cause):
            return False
        self.wake()
        return True

    def again(self, key: K, after: float) -> None:
        """As `enqueue`, by the holder of the key: whoever has caused it still has."""
        self._keys.again(key, loop_time() + after)
        self.wake()

    def take(self) -> K | None:
        """Return the key whose turn it is, and hold it; None if no key is due."""
        return self._keys.take(loop_time())

    def release(self, key: K) -> None:
        """Release a held key. If it was added meanwhile, it becomes pending."""
        self._keys.release(key)
        self.wake()

    def wake(self) -> None:
        """End `wait`."""
        self._wakeup.set()

    async def wait(self, *, for_due: bool) -> None:
        """Wait until the queue changes or `wake` is called.

        Args:
            for_due: whether to return as well once a key is due.
        """
        # NO await between looking at the queue and waiting: an enqueue in between would be missed.
        due = self._keys.next_due() if for_due else None
        if self._wakeup.is_set():
            self._wakeup = anyio.Event()
        with anyio.move_on_after(None if due is None else max(0.0, due - loop_time())):
            await self._wakeup.wait()

    @property
    def held(self) -> int:
        """How many keys are held."""
        return self._keys.held

    @property
    def idle(self) -> bool:
        """Whether no key is due and none is held."""
        due = self._keys.next_due()
        return self.held == 0 and (due is None or due > loop_time())

    @property
    def entries(self) -> int:
        """How many entries are in memory, stale ones included."""
        return self._keys.entries

    def statistics(self) -> QueueStatistics:
        """How many keys wait and how many are held."""
        return self._keys.statistics()


def _has_reconcile(_: object, attribute: attrs.Attribute[object], given: object) -> None:
    what = f"the class {given.__name__}: make one of it" if isinstance(given, type) else f"{given!r:.100}"
    reconcile = None if isinstance(given, type) else getattr(given, "reconcile", None)
    if reconcile is not None and (fault := fault_of(reconcile, 1, "a key", is_async=True)):
        what = f"{what}, whose reconcile {fault}"
    if reconcile is None or fault:
        raise TypeError(f"{attribute.name}: an object with `async def reconcile(self, key)`, not {what}")


@attrs.define(eq=False, repr=False)
class Controller(Generic[K]):
    """Calls a reconciler for the keys of its queue, for at most `concurrency` of them at a time.

    A reconcile that fails is retried alone, with exponential back-off; it does not delay other keys.
    """

    name: str
    reconciler: Reconciler[K] = attrs.field(validator=_has_reconcile)
    concurrency: int = attrs.field(default=1, kw_only=True, validator=attrs.validators.ge(1))
    """Reconciles at a time. They mostly wait for answers, so this bounds requests in flight, not threads."""
    queue: KeyQueue[K] = attrs.field(factory=KeyQueue, kw_only=True)
    backoff: Backoff = attrs.field(default=ITEM_BACKOFF, kw_only=True)
    fraction: Callable[[], float] = attrs.field(kw_only=True, default=lambda: 0.0)
    """The source of jitter: numbers in [0, 1)."""
    hook: ControllerHook | None = attrs.field(default=None, kw_only=True)
    """For metrics. What it raises is in the log, and holds up nothing."""
    _failures: dict[K, tuple[int, str]] = attrs.field(factory=dict, init=False)
    """By key, how many there were in a row, and the last one's words: the log has them once."""
    _draining: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self.hook = unfailing(self.hook)

    def __repr__(self) -> str:
        counts = self.queue.statistics()
        draining = ", draining" if self._draining else ""
        return f"<Controller {self.name}: {counts.ready_or_delayed} keys waiting, {counts.held} in work{draining}>"

    def enqueue(self, key: K, after: float = 0.0) -> None:
        """See `KeyQueue.enqueue`."""
        self.queue.enqueue(key, after)

    async def run(self) -> None:
        """Reconcile until cancelled, or until `drain` was called and no reconcile is under way.

        Few begin in one turn of the loop: between them events are read. Whoever causes many reconciles causes many
        events, and what is behind these in a watch is not in the queue yet, so it has no turn.
        """
        async with anyio.create_task_group() as tasks:
            while not self._draining or self.queue.held:
                begun = 0
                while self._has_room and (key := self.queue.take()) is not None:
                    tasks.start_soon(self._work, key)
                    begun += 1
                    if begun % IN_ONE_TURN == 0:
                        await anyio.lowlevel.checkpoint()
                await self.queue.wait(for_due=self._has_room)

    def drain(self) -> None:
        """Start nothing new, let what is under way end, then end `run`."""
        self._draining = True
        self.queue.wake()

    @property
    def idle(self) -> bool:
        """Whether nothing is due and nothing is being reconciled."""
        return self.queue.idle

    @property
    def _has_room(self) -> bool:
        return not self._draining and self.queue.held < self.concurrency

    async def _work(self, key: K) -> None:
        try:
            await self._reconcile(key)
        finally:
            self.queue.release(key)

    async def _reconcile(self, key: K) -> None:
        started = loop_time()
        error: Exception | None = None
        try:
            with structlog.contextvars.bound_contextvars(controller=self.name, key=str(key)), own_cancellation():
                action = await self.reconciler.reconcile(key)
            if not isinstance(action, Action | None):
                raise TypeError(f"a reconcile answers with an Action or None, not with {action!r:.100}")
            delay = None if action is None else action.delay
        except Exception as failure:  # it costs this key alone (never its own cancellation)
            error = failure
            self._retry(key, failure)
        else:
            self._failures.pop(key, None)
            if delay is not None:
                self.queue.again(key, delay)
        if self.hook is not None:
            self.hook.reconciled(self.name, loop_time() - started, error)

    def _retry(self, key: K, failure: Exception) -> None:
        failures, before = self._failures.get(key, (0, ""))
        self._failures[key] = failures + 1, str(failure)
        delay = self.backoff.delay(failures + 1, self.fraction())
        if isinstance(failure, Conflict):
            # Somebody else wrote first, and the event of that write enqueues the key. Until it is here, the same write
            # would be refused again.
            delay = max(delay, CONFLICT_DELAY)
            log.debug("conflict", controller=self.name, key=str(key), error=str(failure))
        elif isinstance(failure, ApiError):
            delay = max(delay, failure.retry_after or 0.0)
            report = log.debug if str(failure) == before else log.info
            report("retry", controller=self.name, key=str(key), error=str(failure), seconds=round(delay, 3))
        else:
            log.error("reconcile failed", controller=self.name, key=str(key), exc_info=failure)
        self.queue.again(key, delay)


@attrs.frozen
class Process:
    """What all parts have in common."""

    clock: Callable[[], datetime]
    """The wall clock."""
    fraction: Callable[[], float]
    """The source of jitter: numbers in [0, 1)."""
    instance: str
    """Who writes the events: the process's name."""
    hook: ControllerHook | None = None
    """For metrics of reconciles."""

    def controller(
        self, name: str, reconciler: Reconciler[ObjectKey], queue: KeyQueue[ObjectKey], concurrency: int = 1
    ) -> Controller[ObjectKey]:
        """A controller that takes the keys of a queue.

        Args:
            name: in logs and metrics.
            reconciler: called for each key.
            queue: of the keys.
            concurrency: how many keys at a time.
        """
        return Controller(
            name, reconciler, queue=queue, concurrency=concurrency, fraction=self.fraction, hook=self.hook
        )
