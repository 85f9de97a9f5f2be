"""Executing plans: a slow or failing worker holds up its own part of them and nothing else.

A reconcile waits for the manager's writes only. What is to be done on a worker goes on in a task of its own. Until that
has ended, and during the back-off after it has failed, nothing more is begun there for that Workload; then the Workload
is planned again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

import anyio.abc
import attrs
import structlog

from multikueue.core.machinery.backoff import ITEM_BACKOFF, Backoff
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.workload.effects import MANAGER, ApplyStatus, CreateJob, DeleteWorkload, Effect
from multikueue.core.workload.snapshot import Creating, Idle, InFlight, Removing, WritingStatus
from multikueue.errors import ApiError, Conflict
from multikueue.logs import get_logger
from multikueue.runtime.effect_executor import EffectExecutor
from multikueue.runtime.loop import BackgroundTasks, loop_time

Part: TypeAlias = tuple[ClusterName, ObjectKey]
"""The part of a plan for one Workload that is executed on one worker."""

ABANDONED_AFTER: Final = 600.0
"""Seconds after the end of its back-off until a part is forgotten that was not retried."""

log = get_logger(__name__)


@attrs.frozen
class _Failed:
    times: int
    until: float
    """When its back-off ends, on the loop's clock."""
    why: str = ""


@attrs.define(eq=False)
class PartBackoffs:
    """The back-off of each part that has failed."""

    backoff: Backoff = ITEM_BACKOFF
    fraction: Callable[[], float] = attrs.field(default=lambda: 0.0, kw_only=True)
    """The source of jitter: numbers in [0, 1)."""
    _failed: dict[Part, _Failed] = attrs.field(factory=dict, init=False)
    """In the order of their last failures."""

    def __len__(self) -> int:
        return len(self._failed)

    def left(self, part: Part) -> float:
        """Seconds until a part may be retried; 0 or less if it may be now."""
        return self._failed[part].until - loop_time() if part in self._failed else 0.0

    def failed(self, part: Part, error: Exception) -> float:
        """Begin a back-off; return its seconds."""
        before = self._failed.pop(part, None)
        times = before.times + 1 if before is not None else 1
        delay = self.backoff.delay(times, self.fraction())
        if isinstance(error, ApiError):
            delay = max(delay, error.retry_after or 0.0)
            known = isinstance(error, Conflict) or error.told or (before is not None and before.why == str(error))
            report = log.debug if known else log.info
            report("retry", cluster=part[0], key=str(part[1]), error=str(error), seconds=round(delay, 3))
        else:
            log.error("unexpected exception", cluster=part[0], key=str(part[1]), exc_info=error)
        self._failed[part] = _Failed(times, loop_time() + delay, str(error))
        self._forget_abandoned()
        return delay

    def succeeded(self, part: Part) -> None:
        """Forget the failures of a part."""
        self._failed.pop(part, None)

    def forget(self, key: ObjectKey) -> None:
        """End the back-offs of a Workload: its user asks for that."""
        for part in [part for part in self._failed if part[1] == key]:
            del self._failed[part]

    def connected(self, cluster: ClusterName) -> None:
        """End the back-offs of a worker: it is connected again."""
        for part in [part for part in self._failed if part[0] == cluster]:
            del self._failed[part]

    def _forget_abandoned(self) -> None:
        """Forget parts that were not retried after their back-off: the Workload is gone, or runs elsewhere."""
        before = loop_time() - ABANDONED_AFTER
        for part in [*itertools.takewhile(lambda part: self._failed[part].until < before, self._failed)]:
            del self._failed[part]


@attrs.define(eq=False, repr=False)
class WorkerExecutor:
    """Executes plans, one part per worker and Workload.

    * At most one task of a part is under way, so its effects never overtake each other.
    * A part that fails is retried after a back-off of its own, or as soon as its worker is connected again.
    """

    effects: EffectExecutor
    enqueue: Callable[[ObjectKey, float], None]
    """Has a Workload planned again after some seconds."""
    backoffs: PartBackoffs
    _tasks: BackgroundTasks = attrs.field(factory=BackgroundTasks, init=False)
    _under_way: dict[Part, tuple[Effect, ...]] = attrs.field(factory=dict, init=False)
    _wanted: set[Part] = attrs.field(factory=set, init=False)
    """Parts that were planned again while they were under way."""
    _idle: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    def __repr__(self) -> str:
        return f"<WorkerExecutor: {len(self._under_way)} parts under way, {len(self.backoffs)} failed>"

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Execute the workers' parts until cancelled."""
        await self._tasks.run(task_status=task_status)

    async def execute(self, key: ObjectKey, workload: Json | None, effects: tuple[Effect, ...]) -> None:
        """Execute a plan: start the workers' parts, and wait for the manager's.

        Raises:
            ApiError: a write on the manager failed.
        """
        parts: dict[ClusterName, list[Effect]] = {}
        for effect in effects:
            parts.setdefault(effect.cluster, []).append(effect)
        own = parts.pop(MANAGER, [])
        for cluster, part in parts.items():
            self._start((cluster, key), workload, tuple(part))
        if own:
            await self.effects.execute(workload, tuple(own))

    def in_flight(self, cluster: ClusterName, key: ObjectKey) -> InFlight:
        """What is being done for a Workload on a worker at this moment."""
        part = self._under_way.get((cluster, key), ())
        if any(isinstance(effect, CreateJob) for effect in part):
            return Creating()
        if any(isinstance(effect, DeleteWorkload) for effect in part):
            return Removing()
        return WritingStatus() if any(isinstance(effect, ApplyStatus) for effect in part) else Idle()

    async def wait_idle(self) -> None:
        """Wait until nothing is under way."""
        while self._under_way:
            await self._idle.wait()

    def _start(self, part: Part, workload: Json | None, effects: tuple[Effect, ...]) -> None:
        if part in self._under_way:
            self._wanted.add(part)
        elif (left := self.backoffs.left(part)) > 0.0:
            # This plan was made instead of the one that was to follow the back-off: ask for that one again.
            self.enqueue(part[1], left)
        else:
            self._under_way[part] = effects
            self._tasks.start(partial(self._execute, part, workload, effects))

    async def _execute(self, part: Part, workload: Json | None, effects: tuple[Effect, ...]) -> None:
        try:
            with structlog.contextvars.bound_contextvars(cluster=part[0], key=str(part[1])):
                await self.effects.execute(workload, effects)
        except Exception as error:  # it costs this part alone (never CancelledError)
            self.enqueue(part[1], self.backoffs.failed(part, error))
        else:
            self.backoffs.succeeded(part)
            if part in self._wanted:
                self.enqueue(part[1], 0.0)
        finally:
            del self._under_way[part]
            self._wanted.discard(part)
            if not self._under_way:
                self._idle.set()
                self._idle = anyio.Event()
