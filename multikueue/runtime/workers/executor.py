"""Executing plans: a slow or failing worker holds up its own part of them and nothing else.

A reconcile waits for the manager's writes only. What is to be done on a worker goes on in a task of its own. Until that
has ended, and during the back-off after it has failed, nothing more is begun there for that Workload; then the Workload
is planned again.

Each worker has places for so many parts at a time. For a part without a place only the key of its Workload is kept; the
Workload is planned again when there is room. Namespaces take turns for places, and Workloads that the manager does not
have, which anybody on the worker may invent, have a few of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable
from functools import partial
from typing import Final, TypeAlias

import anyio.abc
import attrs
import structlog

from multikueue.core.machinery.backoff import ITEM_BACKOFF, Backoff
from multikueue.core.machinery.slots import KeySlots
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.worker_states import (
    Creating,
    Idle,
    InFlight,
    OutcomeUnknown,
    Removing,
    WritingStatus,
)
from multikueue.core.workload.effects import MANAGER, ApplyStatus, CreateJob, CreateWorkload, DeleteWorkload, Effect
from multikueue.core.workload.seen.graces import LATE_CREATION
from multikueue.errors import ApiError, Conflict
from multikueue.logs import get_logger
from multikueue.runtime.effect_executor import EffectExecutor
from multikueue.runtime.loop import BackgroundTasks, loop_time, own_cancellation
from multikueue.runtime.target import Target
from multikueue.runtime.workers.pool import WorkerCluster

WorkerPlan: TypeAlias = tuple[ClusterName, ObjectKey]
"""The part of a plan for one Workload that is executed on one worker."""

ABANDONED_AFTER: Final = 600.0
"""Seconds after the end of its back-off until a part is forgotten that was not retried."""

FAILED: Final = 50_000
"""Parts of one worker that are remembered to have failed: as many as it may have copies."""
PLACES: Final = 256
"""Parts under way on one worker: eight for each of its client's connections, so that these are never idle."""
SHARE: Final = PLACES // 2
"""Of these, what one namespace may have."""
UNKNOWN_SHARE: Final = 16
"""Of these, what Workloads may have that the manager does not have: half of the connections, even if they all hang."""

log = get_logger(__name__)


def _share(namespace: Hashable) -> int:
    return UNKNOWN_SHARE if namespace is None else SHARE


@attrs.frozen
class _Failed:
    times: int
    until: float
    """When its back-off ends, on the loop's clock."""
    why: str = ""
    unknown_until: float = -math.inf
    """Until when the worker may turn out to have carried out the request that failed."""


@attrs.define(eq=False)
class WorkerBackoffs:
    """The back-off of each part that has failed."""

    backoff: Backoff = ITEM_BACKOFF
    fraction: Callable[[], float] = attrs.field(default=lambda: 0.0, kw_only=True)
    """The source of jitter: numbers in [0, 1)."""
    _failed: dict[ClusterName, dict[ObjectKey, _Failed]] = attrs.field(factory=dict, init=False)
    """By worker, in the order of their last failures; none is empty."""

    def __len__(self) -> int:
        return sum(map(len, self._failed.values()))

    def left(self, part: WorkerPlan) -> float:
        """Seconds until a part may be retried; 0 or less if it may be now."""
        failed = self._failed.get(part[0], {}).get(part[1])
        return failed.until - loop_time() if failed is not None else 0.0

    def has_failed(self, part: WorkerPlan) -> bool:
        """Whether a part has failed, and not succeeded since."""
        return part[1] in self._failed.get(part[0], {})

    def outcome_unknown(self, part: WorkerPlan) -> bool:
        """Whether the last request failed, and the worker may have carried it out: the caches do not show that yet."""
        failed = self._failed.get(part[0], {}).get(part[1])
        return failed is not None and loop_time() < failed.unknown_until

    def failed(self, part: WorkerPlan, error: Exception) -> float:
        """Begin a back-off; return its seconds."""
        of_worker = self._failed.setdefault(part[0], {})
        before = of_worker.pop(part[1], None)
        times = before.times + 1 if before is not None else 1
        delay = self.backoff.delay(times, self.fraction())
        if isinstance(error, ApiError):
            delay = max(delay, error.retry_after or 0.0)
            expected = (
                isinstance(error, Conflict) or error.reported or (before is not None and before.why == str(error))
            )
            report = log.debug if expected else log.info
            report("retry", cluster=part[0], key=str(part[1]), error=str(error), seconds=round(delay, 3))
        else:
            log.error("unexpected exception", cluster=part[0], key=str(part[1]), exc_info=error)
        doubt = before.unknown_until if before is not None else -math.inf
        did_nothing = isinstance(error, ApiError) and error.did_nothing
        if isinstance(error, Conflict) or not did_nothing:  # a request that is sent twice conflicts with itself
            doubt = loop_time() + LATE_CREATION.total_seconds()
        of_worker[part[1]] = _Failed(times, loop_time() + delay, str(error), doubt)
        self._forget_abandoned()
        return delay

    def succeeded(self, part: WorkerPlan) -> None:
        """Forget the failures of a part."""
        of_worker = self._failed.get(part[0], {})
        of_worker.pop(part[1], None)
        if not of_worker:
            self._failed.pop(part[0], None)

    def forget(self, key: ObjectKey) -> None:
        """End the back-offs of a Workload: its user asks for that."""
        for cluster in list(self._failed):
            self.succeeded((cluster, key))

    def connected(self, cluster: ClusterName) -> None:
        """End the back-offs of a worker: it is connected again."""
        self._failed.pop(cluster, None)

    def _forget_abandoned(self) -> None:
        """Forget parts that were not retried after their back-off: the Workload is gone, or runs elsewhere.

        And the oldest of a worker on which too many have failed.
        """
        before = loop_time() - ABANDONED_AFTER
        for cluster, failed in list(self._failed.items()):
            while failed and (len(failed) > FAILED or failed[next(iter(failed))].until < before):
                del failed[next(iter(failed))]
            if not failed:
                del self._failed[cluster]


@attrs.define(eq=False, repr=False)
class WorkerExecutor:
    """Executes plans, one part per worker and Workload.

    * At most one task of a part is under way, so its effects never overtake each other.
    * A part that fails is retried after a back-off of its own, or as soon as its worker is connected again.
    * A worker has at most `PLACES` tasks. A part that finds no place is planned again when there is one.
    """

    effects: EffectExecutor
    enqueue: Callable[[ClusterName, ObjectKey, float], bool]
    """Has a Workload planned again after some seconds, because of this worker; False if too many wait because of it."""
    backoffs: WorkerBackoffs
    ended: Callable[[ObjectKey], None] = lambda _: None
    """Called when a part of a Workload has ended."""
    follows: Callable[[ClusterName, ObjectKey], bool] = attrs.field(default=lambda *_: True, kw_only=True)
    """Whether something may follow for a Workload once that has succeeded, though it was planned meanwhile."""
    _tasks: BackgroundTasks = attrs.field(factory=BackgroundTasks, init=False)
    _under_way: dict[WorkerPlan, tuple[Effect, ...]] = attrs.field(factory=dict, init=False)
    _wanted: set[WorkerPlan] = attrs.field(factory=set, init=False)
    """Parts that were planned again while they were under way."""
    _places: dict[ClusterName, KeySlots[ObjectKey]] = attrs.field(factory=dict, init=False)
    """Of the workers on which something is under way."""
    _idle: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    def __repr__(self) -> str:
        without = f", {self.waiting} without a place" if self.waiting else ""
        return f"<WorkerExecutor: {len(self._under_way)} parts under way{without}, {len(self.backoffs)} failed>"

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Execute the workers' parts until cancelled."""
        await self._tasks.run(task_status=task_status)

    async def execute(self, key: ObjectKey, workload: Json | None, effects: tuple[Effect, ...]) -> None:
        """Execute a plan: start the workers' parts, and wait for the manager's.

        It is to be called for empty plans as well: a place may be kept for that Workload.

        Raises:
            ApiError: a write on the manager failed.
        """
        parts: dict[ClusterName, list[Effect]] = {}
        for effect in effects:
            parts.setdefault(effect.cluster, []).append(effect)
        own = parts.pop(MANAGER, [])
        for cluster, part in parts.items():
            self._start((cluster, key), workload, tuple(part))
        self.withdraw(key, but=parts.keys())
        if own:
            await self.effects.execute(workload, tuple(own))

    def withdraw(self, key: ObjectKey, *, but: Collection[ClusterName] = ()) -> None:
        """Nothing is to be done for a Workload now on the workers where it waits for a place.

        Args:
            key: the Workload.
            but: workers where something is.
        """
        for cluster in [name for name, places in self._places.items() if key in places and name not in but]:
            self._places[cluster].withdraw(key)
            self._ask(cluster)

    def in_flight(self, cluster: ClusterName, key: ObjectKey) -> InFlight:
        """What is being done for a Workload on a worker at this moment."""
        part = self._under_way.get((cluster, key))
        if part is None:
            return OutcomeUnknown() if self.backoffs.outcome_unknown((cluster, key)) else Idle()
        if any(isinstance(effect, CreateJob) for effect in part):
            return Creating()
        if any(isinstance(effect, DeleteWorkload) for effect in part):
            return Removing()
        if any(map(_may_open_a_gate, part)):
            return WritingStatus()
        creates = any(isinstance(effect, CreateWorkload) for effect in part)
        return WritingStatus(may_preempt=False) if creates else Idle()

    def put_off(self, cluster: ClusterName, key: ObjectKey) -> bool:
        """Have a Workload planned once what is under way for it on a worker has ended; False: nothing is."""
        if (cluster, key) not in self._under_way:
            return False
        self._wanted.add((cluster, key))
        return True

    def is_busy(self, key: ObjectKey) -> bool:
        """Whether something is under way for a Workload on any worker."""
        return any(of == key for _, of in self._under_way)

    def in_flight_on(self, cluster: ClusterName) -> int:
        """How many parts are under way on a worker."""
        return self._places[cluster].inside if cluster in self._places else 0

    @property
    def waiting(self) -> int:
        """How many parts wait for a place."""
        return sum(places.waiting for places in self._places.values())

    async def wait_idle(self) -> None:
        """Wait until nothing is under way."""
        while self._under_way:
            await self._idle.wait()

    def _start(self, part: WorkerPlan, workload: Json | None, effects: tuple[Effect, ...]) -> None:
        cluster, key = part
        places = self._places.get(cluster) or self._places.setdefault(cluster, KeySlots(PLACES, _share))
        if part in self._under_way:
            self._wanted.add(part)
        elif (left := self.backoffs.left(part)) > 0.0:
            # This plan was made instead of the one that was to follow the back-off: ask for that one again.
            places.withdraw(key)
            self.enqueue(cluster, key, left)
        elif places.enter(key, key.namespace if workload is not None else None):
            self._under_way[part] = effects
            target = self._target_of(cluster, effects)
            if target is not None:
                target.expect(key)
            self._tasks.start(partial(self._execute, part, workload, effects))
        self._ask(cluster)

    def _ask(self, cluster: ClusterName) -> None:
        """Have Workloads planned for which there is room now."""
        places = self._places[cluster]
        while asked := places.ask():
            for key in asked:
                if not self.enqueue(cluster, key, 0.0):
                    places.withdraw(key)
        if not places.inside and not places.waiting:
            del self._places[cluster]

    async def _execute(self, part: WorkerPlan, workload: Json | None, effects: tuple[Effect, ...]) -> None:
        cluster, key = part
        try:
            with structlog.contextvars.bound_contextvars(cluster=cluster, key=str(key)), own_cancellation():
                await self.effects.execute(workload, effects, again=self.backoffs.has_failed(part))
        except Exception as error:  # it costs this part alone (never its own cancellation)
            self.enqueue(cluster, key, self.backoffs.failed(part, error))
        else:
            self.backoffs.succeeded(part)
            if part in self._wanted and self.follows(cluster, key):
                self.enqueue(cluster, key, 0.0)
        finally:
            del self._under_way[part]
            self._wanted.discard(part)
            target = self._target_of(cluster, effects)
            if target is not None:
                target.settle(key)
            self._places[cluster].leave(key)
            self._ask(cluster)
            self.ended(key)
            if not self._under_way:
                self._idle.set()
                self._idle = anyio.Event()

    def _target_of(self, cluster: ClusterName, effects: Iterable[Effect]) -> Target | None:
        """Where a copy of a Workload, or of its job, is made by these effects, if one is."""
        makes = any(isinstance(effect, CreateWorkload | CreateJob) for effect in effects)
        return self.effects.target(cluster) if makes else None


def _may_open_a_gate(effect: Effect) -> bool:
    if isinstance(effect, CreateWorkload):
        return not dig(effect.object, "spec", "preemptionGates")
    return isinstance(effect, ApplyStatus)


def ask_again(workers: Iterable[WorkerCluster], backoffs: WorkerBackoffs, key: ObjectKey) -> None:
    """Forget why a Workload is not tried on workers: its user asks for that."""
    backoffs.forget(key)
    for worker in workers:
        if worker.known is not None:
            worker.known.create_conflicts.forget(key)
