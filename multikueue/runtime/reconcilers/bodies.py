"""Bodies of which the caches keep only what is small: read again for a plan that sends them, a few at a time.

Who creates a job decides how large it is. So no more of these bodies are in memory than there are places, and one
namespace has half of them. What is planned without one is right as far as it deletes, stops and tells; what would be
made of it, or changed by it, waits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Final

import attrs

from multikueue.core.machinery.slots import KeySlots
from multikueue.core.model.copies import forget_replaced, know_digests
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.labels import ToldFinding
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import uid, version_of
from multikueue.core.model.slimmed import is_slimmed, size_noted
from multikueue.core.model.workloads import is_elastic
from multikueue.core.workload.effects import (
    MANAGER,
    AnnounceWorkload,
    CreateDependencies,
    CreateJob,
    CreateWorkload,
    Effect,
    PatchJob,
    PatchWorkload,
    Plan,
)
from multikueue.core.workload.seen.snapshot import Snapshot
from multikueue.protocols import Reader, read
from multikueue.runtime.loop import loop_time

PLACES: Final = 4
"""Workloads whose bodies are in memory at a time. An object has 1.5 MB at most, and parsed several times that."""
SHARE: Final = PLACES // 2
"""Of these, those of one namespace."""
LARGE: Final = 256 << 10
"""Bytes."""
SHARE_OF_LARGE: Final = 1
"""Of these, those of which an object has more than `LARGE` bytes: with what is sent of it to each worker, and answered,
one takes ten times its size."""
TELL_AFTER: Final = 60.0
"""Seconds for which a Workload waits for a place until its user is told."""
TELL_EVERY: Final = 1.0
"""Seconds from one of these to the next: of many that wait, most have a place before it is their turn to be told."""
WAITS: Final = (
    "It waits for its turn to be copied: it is large, or its namespace has its share of what is kept in memory. "
    "Of a namespace one or two such Workloads are copied at a time"
)
_SENT: Final = (CreateWorkload, CreateJob, CreateDependencies, PatchJob, PatchWorkload)
"""What is made of a body, or compared with it."""


@attrs.define(eq=False)
class Bodies:
    """Whose bodies are in memory."""

    client: Reader
    """The manager's."""
    enqueue: Callable[[ObjectKey], object]
    """Has a Workload planned again."""
    is_busy: Callable[[ObjectKey], bool] = lambda _: False
    """Whether something is under way for a Workload on any worker."""
    _places: KeySlots[ObjectKey] = attrs.field(factory=lambda: KeySlots(PLACES, _share), init=False)
    _read: dict[ObjectKey, list[Json]] = attrs.field(factory=dict, init=False)
    _planning: set[ObjectKey] = attrs.field(factory=set, init=False)
    """Of these, those of which a reconcile is under way that reads and sends them."""
    _told_at: dict[ObjectKey, float] = attrs.field(factory=dict, init=False)
    """Of those that wait: when it is told, on the loop's clock; infinity: it was."""
    _last_told: float = attrs.field(default=-math.inf, init=False)

    def __repr__(self) -> str:
        return f"<Bodies: {self._places.inside} in memory, {self._places.waiting} wait>"

    def lacks(self, snapshot: Snapshot, plan: Plan) -> bool:
        """Whether a plan may be another one with the bodies that the caches do not keep."""
        slimmed = [obj for obj in (snapshot.workload, *snapshot.jobs.values()) if obj is not None and is_slimmed(obj)]
        return bool(slimmed) and (any(map(is_elastic, slimmed)) or any(map(_sends_body, plan.effects)))

    async def take(self, snapshot: Snapshot) -> Snapshot | None:
        """A snapshot with the bodies; None: there is no place, and its Workload is planned again when there is.

        They stay in memory until `planned`, and while something is under way on a worker.

        Raises:
            ApiError: they could not be read.
        """
        key, adapter = snapshot.key, snapshot.adapter
        if not self._places.enter(key, _flow(snapshot)):
            if key not in self._told_at:
                self._last_told = max(loop_time() + TELL_AFTER, self._last_told + TELL_EVERY)
                self._told_at[key] = self._last_told
            return None
        self._told_at.pop(key, None)
        self._planning.add(key)
        self._read.setdefault(key, [])
        workload, jobs = snapshot.workload, dict(snapshot.jobs)
        if workload is not None:
            workload = await self._whole(key, WORKLOAD, workload)
        for name, job in snapshot.jobs.items():
            if adapter is not None:
                jobs[name] = await self._whole(key, adapter.resource, job) or job
        return attrs.evolve(snapshot, workload=workload, jobs=jobs)

    async def _whole(self, key: ObjectKey, resource: Resource, shown: Json) -> Json | None:
        """An object with its body: as the caches have it, as it was read before, or read now; None: it is gone."""
        if not is_slimmed(shown):
            return shown
        whole = next((body for body in self._read[key] if _is_as_new(body, shown)), None)
        if whole is None:
            whole = await read(self.client, resource, ObjectKey.of(shown))
            if whole is not None:
                know_digests(whole, shown)
            self._read[key] += [] if whole is None else [whole]
        return whole

    def tell(self, key: ObjectKey) -> tuple[AnnounceWorkload, ...]:
        """What the user of a Workload is told that waits for a place, once it has waited long."""
        if loop_time() < self._told_at.get(key, math.inf):
            return ()
        self._told_at[key] = math.inf
        return (AnnounceWorkload("Normal", WAITS, on_job=True, finding=ToldFinding.COPY_WAITS),)

    def tell_in(self, key: ObjectKey) -> float | None:
        """Seconds until then; None: it was told, or does not wait."""
        at = self._told_at.get(key, math.inf)
        return None if at == math.inf else max(0.0, at - loop_time())

    def planned(self, key: ObjectKey) -> None:
        """The reconcile that asked for bodies has ended."""
        self._planning.discard(key)
        self.ended(key)

    def ended(self, key: ObjectKey) -> None:
        """Something that may use a body has ended: it is given back if nothing else does."""
        if key in self._read and key not in self._planning and not self.is_busy(key):
            self._give_back(key)

    def unneeded(self, key: ObjectKey) -> None:
        """A Workload wants no body now."""
        if key in self and not self.is_busy(key):
            self._give_back(key)

    def _give_back(self, key: ObjectKey) -> None:
        for obj in self._read.pop(key, ()):
            forget_replaced(key, obj, None)
        self._told_at.pop(key, None)
        self._places.leave(key)
        self._places.withdraw(key)
        for asked in self._places.ask():
            self.enqueue(asked)

    def __contains__(self, key: ObjectKey) -> bool:
        """Whether a Workload's body is in memory, or it waits for that."""
        return key in self._read or key in self._places


@attrs.frozen
class _Flow:
    """Whose bodies take turns for places."""

    namespace: str
    is_large: bool


def _flow(snapshot: Snapshot) -> _Flow:
    sizes = map(size_noted, filter(None, (snapshot.workload, *snapshot.jobs.values())))
    return _Flow(snapshot.key.namespace, max(sizes, default=0) > LARGE)


def _share(flow: Hashable) -> int:
    return SHARE_OF_LARGE if isinstance(flow, _Flow) and flow.is_large else SHARE


def with_bodies(shown: Snapshot, read_as: Snapshot) -> Snapshot | None:
    """What the caches show by now, with the bodies that were read meanwhile; None: they are of another time.

    Args:
        shown: as it is now.
        read_as: with the bodies.
    """
    if (shown.workload is None) != (read_as.workload is None) or shown.jobs.keys() != read_as.jobs.keys():
        return None
    pairs = [(shown.workload, read_as.workload), *((job, read_as.jobs[name]) for name, job in shown.jobs.items())]
    if any(here is not None and there is not None and not _is_as_new(there, here) for here, there in pairs):
        return None
    jobs = {name: read_as.jobs[name] if is_slimmed(job) else job for name, job in shown.jobs.items()}
    workload = shown.workload
    if workload is not None and is_slimmed(workload):
        workload = read_as.workload
    return attrs.evolve(shown, workload=workload, jobs=jobs)


def _is_as_new(whole: Json, shown: Json) -> bool:
    newer = version_of(whole) >= version_of(shown)
    return not is_slimmed(shown) or (uid(whole) == uid(shown) and newer and not is_slimmed(whole))


def without_bodies(plan: Plan) -> Plan:
    """The part of a plan that is right whatever is in the bodies: what is done where nothing of them is sent."""
    sent = {effect.cluster for effect in plan.effects if _sends_body(effect)}
    return attrs.evolve(plan, effects=tuple(effect for effect in plan.effects if effect.cluster not in sent))


def _sends_body(effect: Effect) -> bool:
    return isinstance(effect, _SENT) and effect.cluster != MANAGER
