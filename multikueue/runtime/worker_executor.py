"""One lane per worker and Workload: a slow or failing worker holds up its own lane and nothing else.

A reconcile waits for the manager's writes only. What is to be done on a worker goes on in a task of its own; until that
has ended, and for a while after it has failed, the lane takes nothing more, and the plan is made again afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from http import HTTPStatus
from typing import Final, TypeAlias

import anyio
import anyio.abc
import attrs

from multikueue.core.machinery.backoff import ITEM_BACKOFF, Backoff
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.workload.effects import MANAGER, CreateJob, DeleteWorkload, Effect
from multikueue.errors import ApiError, Conflict, NotSent
from multikueue.logs import get_logger
from multikueue.runtime.clock import loop_time
from multikueue.runtime.effect_executor import EffectExecutor

Lane: TypeAlias = tuple[ClusterName, ObjectKey]

ABANDONED_AFTER: Final = 600.0
"""Seconds after the end of its rest that a lane's failures are remembered, if nobody has come back to it."""

log = get_logger(__name__)


@attrs.define(eq=False)
class WorkerExecutor:
    """Hands the parts of plans to their clusters.

    * A lane has at most one part under way, so its effects never overtake each other.
    * A part that fails is tried again after a back-off of its lane, or as soon as its worker is connected again.
    """

    effects: EffectExecutor
    enqueue: Callable[[ObjectKey, float], None]
    """Has a Workload planned again after some seconds."""
    backoff: Backoff = attrs.field(default=ITEM_BACKOFF, kw_only=True)
    fraction: Callable[[], float] = attrs.field(default=lambda: 0.0, kw_only=True)
    _tasks: anyio.abc.TaskGroup | None = attrs.field(default=None, init=False)
    _under_way: dict[Lane, tuple[Effect, ...]] = attrs.field(factory=dict, init=False)
    _wanted: set[Lane] = attrs.field(factory=set, init=False)
    """WorkerExecutor that something was to be done on while they were taken."""
    _failures: dict[Lane, int] = attrs.field(factory=dict, init=False)
    _rests_until: dict[Lane, float] = attrs.field(factory=dict, init=False)
    _unsure_since: dict[Lane, float] = attrs.field(factory=dict, init=False)
    """WorkerExecutor on which a job was to be created, and nobody knows whether it was."""
    _idle: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Carry parts until cancelled."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            task_status.started()
            await anyio.sleep_forever()

    async def perform(self, key: ObjectKey, workload: Json | None, effects: tuple[Effect, ...]) -> None:
        """Carry out a plan: start the workers' parts, and wait for the manager's.

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
            await self.effects.perform(workload, tuple(own))

    def starting(self, cluster: ClusterName, key: ObjectKey) -> bool:
        """Whether the job is being created there: it may exist already, and no other worker may get it."""
        return _has(CreateJob, self._under_way.get((cluster, key), ()))

    def removing(self, cluster: ClusterName, key: ObjectKey) -> bool:
        """Whether its copy is being removed there: it will be gone before it shows, and cannot win any more."""
        return _has(DeleteWorkload, self._under_way.get((cluster, key), ()))

    def unsure_for(self, cluster: ClusterName, key: ObjectKey) -> timedelta | None:
        """How long ago the job was to be created there, if there was no answer to tell whether it was."""
        since = self._unsure_since.get((cluster, key))
        return None if since is None else timedelta(seconds=loop_time() - since)

    @property
    def remembered(self) -> int:
        """How many lanes have failed and are not forgotten."""
        return len(self._failures)

    def settled(self, cluster: ClusterName, key: ObjectKey) -> None:
        """Whether the job was created there is known by now, or does not matter any more."""
        self._unsure_since.pop((cluster, key), None)

    def answers(self, cluster: ClusterName, *, again: bool) -> None:
        """The worker answers: what failed is tried at once.

        Args:
            cluster: which one.
            again: whether it did not before.
        """
        for lane in [lane for lane in self._rests_until if lane[0] == cluster]:
            del self._rests_until[lane]
            self._failures.pop(lane, None)
        for lane in [lane for lane in self._unsure_since if again and lane[0] == cluster]:
            self._unsure_since[lane] = loop_time()  # only what is seen from now on tells

    async def wait_idle(self) -> None:
        """Wait until nothing is under way."""
        while self._under_way:
            await self._idle.wait()

    def _start(self, lane: Lane, workload: Json | None, part: tuple[Effect, ...]) -> None:
        if lane in self._under_way:
            self._wanted.add(lane)
            return
        rest = self._rests_until.get(lane, 0.0) - loop_time()
        if rest > 0.0:
            # What planned this took the place of the plan that was to come when the rest is over: ask for it again.
            self.enqueue(lane[1], rest)
            return
        assert self._tasks is not None, "the lanes are not running"
        self._under_way[lane] = part
        self._tasks.start_soon(self._carry, lane, workload, part)

    async def _carry(self, lane: Lane, workload: Json | None, part: tuple[Effect, ...]) -> None:
        error: Exception | None = None
        try:
            await self.effects.perform(workload, part)
        except Exception as failure:  # one lane's failure is that lane's alone (never CancelledError)
            error = failure
        finally:
            del self._under_way[lane]
            if not self._under_way:
                self._idle.set()
                self._idle = anyio.Event()
        creates = _has(CreateJob, part)
        if error is None:
            if creates:
                self.settled(*lane)
            self._succeeded(lane)
        else:
            if creates and _is_no_answer(error):
                self._unsure_since[lane] = loop_time()
            self._failed(lane, error)

    def _succeeded(self, lane: Lane) -> None:
        self._failures.pop(lane, None)
        self._rests_until.pop(lane, None)
        if lane in self._wanted:
            self._wanted.discard(lane)
            self.enqueue(lane[1], 0.0)

    def _failed(self, lane: Lane, error: Exception) -> None:
        self._wanted.discard(lane)
        failures = self._failures[lane] = self._failures.get(lane, 0) + 1
        delay = self.backoff.delay(failures, self.fraction())
        if isinstance(error, ApiError):
            delay = max(delay, error.retry_after or 0.0)
            tell = log.debug if isinstance(error, Conflict) or failures > 1 else log.info
            tell("retry", cluster=lane[0], key=str(lane[1]), error=str(error), seconds=round(delay, 3))
        else:
            log.error("cannot carry out", cluster=lane[0], key=str(lane[1]), exc_info=error)
        self._rests_until.pop(lane, None)  # so that it comes last
        self._rests_until[lane] = loop_time() + delay
        self._forget_abandoned()
        self.enqueue(lane[1], delay)

    def _forget_abandoned(self) -> None:
        """Forget lanes nobody has come back to after their rest: the Workload is gone, or runs elsewhere."""
        before = loop_time() - ABANDONED_AFTER
        while self._rests_until and next(iter(self._rests_until.values())) < before:
            lane = next(iter(self._rests_until))
            del self._rests_until[lane]
            self._failures.pop(lane, None)


def _has(kind: type[Effect], part: tuple[Effect, ...]) -> bool:
    return any(isinstance(effect, kind) for effect in part)


def _is_no_answer(error: Exception) -> bool:
    """Whether what was to be written may have been."""
    if not isinstance(error, ApiError):
        return True
    return not isinstance(error, NotSent) and (error.status == 0 or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR)
