"""Executing plans: a slow or failing worker holds up its own part of them and nothing else.

A reconcile waits for the manager's writes only. What is to be done on a worker goes on in a task of its own. Until that
has ended, and for a while after it has failed, nothing more is begun there for that Workload; then the plan is made
again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import anyio
import anyio.abc
import attrs

from multikueue.core.machinery.backoff import ITEM_BACKOFF, Backoff
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.workload.effects import MANAGER, CreateJob, DeleteWorkload, Effect
from multikueue.core.workload.snapshot import Creating, Idle, InFlight, Removing
from multikueue.errors import ApiError, Conflict
from multikueue.logs import get_logger
from multikueue.runtime.clock import loop_time
from multikueue.runtime.effect_executor import EffectExecutor

Part: TypeAlias = tuple[ClusterName, ObjectKey]
"""What is done on one worker for one Workload."""

ABANDONED_AFTER: Final = 600.0
"""Seconds after the end of its back-off that a part's failures are remembered, if nobody has come back to it."""

log = get_logger(__name__)


@attrs.define(eq=False)
class WorkerExecutor:
    """Executes plans, one part per worker and Workload.

    * Of a part at most one task is under way, so its effects never overtake each other.
    * A part that fails is tried again after a back-off of its own, or as soon as its worker is connected again.
    """

    effects: EffectExecutor
    enqueue: Callable[[ObjectKey, float], None]
    """Has a Workload planned again after some seconds."""
    backoff: Backoff = attrs.field(default=ITEM_BACKOFF, kw_only=True)
    fraction: Callable[[], float] = attrs.field(default=lambda: 0.0, kw_only=True)
    _tasks: anyio.abc.TaskGroup | None = attrs.field(default=None, init=False)
    _under_way: dict[Part, tuple[Effect, ...]] = attrs.field(factory=dict, init=False)
    _wanted: set[Part] = attrs.field(factory=set, init=False)
    """Parts for which something was to be done while they were under way."""
    _failures: dict[Part, int] = attrs.field(factory=dict, init=False)
    _waits_until: dict[Part, float] = attrs.field(factory=dict, init=False)
    _idle: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Execute the workers' parts until cancelled."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            task_status.started()
            await anyio.sleep_forever()

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
        return Removing() if any(isinstance(effect, DeleteWorkload) for effect in part) else Idle()

    @property
    def remembered(self) -> int:
        """How many parts have failed and are not forgotten."""
        return len(self._failures)

    def connected(self, cluster: ClusterName) -> None:
        """The worker answers: what failed there is tried at once."""
        for part in [part for part in self._waits_until if part[0] == cluster]:
            del self._waits_until[part]
            self._failures.pop(part, None)

    async def wait_idle(self) -> None:
        """Wait until nothing is under way."""
        while self._under_way:
            await self._idle.wait()

    def _start(self, part: Part, workload: Json | None, effects: tuple[Effect, ...]) -> None:
        if part in self._under_way:
            self._wanted.add(part)
            return
        left = self._waits_until.get(part, 0.0) - loop_time()
        if left > 0.0:
            # What planned this took the place of the plan that was to come after the back-off: ask for it again.
            self.enqueue(part[1], left)
            return
        assert self._tasks is not None, "the executor is not running"
        self._under_way[part] = effects
        self._tasks.start_soon(self._execute, part, workload, effects)

    async def _execute(self, part: Part, workload: Json | None, effects: tuple[Effect, ...]) -> None:
        error: Exception | None = None
        try:
            await self.effects.execute(workload, effects)
        except Exception as failure:  # one part's failure is that part's alone (never CancelledError)
            error = failure
        finally:
            del self._under_way[part]
            if not self._under_way:
                self._idle.set()
                self._idle = anyio.Event()
        if error is None:
            self._succeeded(part)
        else:
            self._failed(part, error)

    def _succeeded(self, part: Part) -> None:
        self._failures.pop(part, None)
        self._waits_until.pop(part, None)
        if part in self._wanted:
            self._wanted.discard(part)
            self.enqueue(part[1], 0.0)

    def _failed(self, part: Part, error: Exception) -> None:
        self._wanted.discard(part)
        failures = self._failures[part] = self._failures.get(part, 0) + 1
        delay = self.backoff.delay(failures, self.fraction())
        if isinstance(error, ApiError):
            delay = max(delay, error.retry_after or 0.0)
            tell = log.debug if isinstance(error, Conflict) or failures > 1 else log.info
            tell("retry", cluster=part[0], key=str(part[1]), error=str(error), seconds=round(delay, 3))
        else:
            log.error("unexpected exception", cluster=part[0], key=str(part[1]), exc_info=error)
        self._waits_until.pop(part, None)  # so that it comes last
        self._waits_until[part] = loop_time() + delay
        self._forget_abandoned()
        self.enqueue(part[1], delay)

    def _forget_abandoned(self) -> None:
        """Forget parts nobody has come back to after their back-off: the Workload is gone, or runs elsewhere."""
        before = loop_time() - ABANDONED_AFTER
        while self._waits_until and next(iter(self._waits_until.values())) < before:
            part = next(iter(self._waits_until))
            del self._waits_until[part]
            self._failures.pop(part, None)
