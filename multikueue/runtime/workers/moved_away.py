"""Which Workloads may have something on a lost worker that must not run there any more, and where that is.

What this process has seen there tells, and what the Workloads themselves say of the workers that had them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Final

import attrs

from multikueue.adapters import AdapterRegistry, SafeAdapter
from multikueue.core.machinery.fair_keys import in_turns
from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.marks import Marks
from multikueue.core.model.names import ClusterName, Json, ObjectKey, Resource
from multikueue.core.model.objects import labels_of, name_of
from multikueue.core.model.shape import workload_flaw
from multikueue.core.model.worker_names import namespace_on, origin_key
from multikueue.core.model.workload_facts import WORKLOADS
from multikueue.core.model.workloads import has_had_owner, is_finished, owner_names
from multikueue.core.returns import has_left, may_be_over, stop_over
from multikueue.core.workload.effects import ApplyStatus, DeleteJob
from multikueue.core.workload.seen.snapshot import JobCopy, PlanSettings
from multikueue.runtime.caches.manager_cluster import ManagerCluster
from multikueue.runtime.caches.workload_indexes import LEFT, RUNNING, check_names
from multikueue.runtime.workers.copies import WorkerCopies

BREATH: Final = 500
"""Workloads of which nothing is suspect that are looked at before others have a turn: some ten milliseconds."""


@attrs.frozen
class Suspect:
    """What of a Workload may be on a lost worker."""

    key: ObjectKey
    """The manager's Workload."""
    copy: ObjectKey
    """The Workload copy there."""
    jobs: tuple[tuple[Resource, ObjectKey], ...]
    """The copies of its jobs there."""


@attrs.frozen
class Loss:
    """A worker that is lost."""

    worker: ClusterName
    since: datetime
    """By the manager's clock; of a loss that an earlier process has seen it may be too late."""
    known: WorkerCopies | None
    """What this process has read there; None: nothing."""


@attrs.define(eq=False)
class Suspects:
    """Those of one loss. Each version of a Workload is looked at once."""

    manager: ManagerCluster
    adapters: AdapterRegistry
    settings: PlanSettings
    clock: Callable[[], datetime]
    loss: Loss
    _there: dict[ObjectKey, None] = attrs.field(init=False)
    """The Workloads whose jobs were there: the caches stay as they are during a loss."""
    _innocent: dict[ObjectKey, Json | None] = attrs.field(factory=dict, init=False)
    """The Workloads, as they were, of which nothing there is suspect."""
    _done: set[ObjectKey] = attrs.field(factory=set, init=False)

    @_there.default
    def _seen_there(self) -> dict[ObjectKey, None]:
        known = self.loss.known
        copies = known.workloads.informer.values() if known is not None else ()
        there = (origin_key(copy) for copy in copies if has_had_owner(copy) and not is_finished(copy))
        return dict.fromkeys(in_turns(there, attrgetter("namespace")))

    def __iter__(self) -> Iterator[Suspect]:
        """Those that were not looked at during this loss, as far as `BREATH` leads."""
        left = BREATH
        for key in self._keys():
            workload = self.manager.workloads.get(key)
            if left == 0:
                return
            if key in self._innocent and self._innocent[key] is workload:
                continue
            if (suspect := self._suspect(key, workload)) is not None:
                yield suspect
            else:
                self._innocent[key], left = workload, left - 1

    def look_away(self) -> None:
        """Those so far have been looked at, or are left to the plan."""
        self._done.update([*self._keys()])

    def _keys(self) -> Iterator[ObjectKey]:
        """The Workloads that may have something there, and do not run there as they should. Namespaces take turns: not
        all of them may be looked at in time."""
        workloads, name = self.manager.workloads.informer, self.loss.worker
        running = workloads.keys_by(RUNNING, name)
        said = in_turns(sorted(workloads.keys_by(LEFT, name) - self._there.keys()), attrgetter("namespace"))
        for key in itertools.chain(self._there, said):
            if not (key in running or key in self._done or key in workloads.unreadable):
                yield key

    def stop(
        self, suspect: Suspect, copy: Json | None, jobs: Sequence[tuple[Resource, Json]]
    ) -> tuple[ApplyStatus | DeleteJob, ...]:
        """What is to be done there, now that these objects were read; see `stop_over`."""
        workload = self.manager.workloads.get(suspect.key)
        if suspect.key in self.manager.workloads.informer.unreadable or not self._may_be_over(workload):
            return ()
        if copy is not None and (workload_flaw(copy) or not self._is_of(copy, suspect.key, [str(origin_key(copy))])):
            return ()
        copies = [(self.adapters.get(resource.gvk), JobCopy(resource, job)) for resource, job in jobs]
        ours = [(row, job) for row, job in copies if row is not None and self._is_ours(row, job.object, suspect.key)]
        return tuple(
            stop_over(
                self.loss.worker,
                workload,
                copy,
                ours,
                marks=Marks(self.settings.mark_key),
                workers={self.loss.worker, *map(name_of, self.manager.clusters.values())},
                now=self.clock(),
            )
        )

    def _is_ours(self, row: SafeAdapter, job: Json, key: ObjectKey) -> bool:
        return not row.flaw(job) and self._is_of(job, key, row.copy_entries(job) or ())

    def _is_of(self, copy: Json, key: ObjectKey, entries: Sequence[str]) -> bool:
        """Whether a copy says that it is of this manager's Workload, and of no other."""
        return labels_of(copy).get(ORIGIN_LABEL) == self.settings.origin and [*entries] == [str(key)]

    def _may_be_over(self, workload: Json | None) -> bool:
        check, _ = self.manager.our_check(check_names(workload or {}))
        return (workload is None or check is not None) and may_be_over(workload, check or "", self.loss.worker)

    def _suspect(self, key: ObjectKey, workload: Json | None) -> Suspect | None:
        """Names are those that were seen there, or that the Workload tells."""
        if not self._may_be_over(workload):
            return None
        seen = self._seen(key) if key in self._there else None
        since = self.loss.since if self.loss.known is not None else None
        if workload is None or not has_left(workload, self.loss.worker, since):
            return seen
        there = namespace_on(workload, self.loss.worker)
        said = Suspect(key, ObjectKey(there, key.name), tuple(self._told(workload, there)))
        return said if seen is None else attrs.evolve(seen, jobs=seen.jobs or said.jobs)

    def _seen(self, key: ObjectKey) -> Suspect | None:
        known = self.loss.known
        if known is None:
            return None
        there = known.place_of(key, None)
        copy, (jobs, _) = known.workload_of(key, there), known.jobs_of(key, None, there)
        suspect = Suspect(
            key, ObjectKey(there, key.name), tuple((job.resource, ObjectKey.of(job.object)) for job in jobs)
        )
        return suspect if self.stop(suspect, copy, [(job.resource, job.object) for job in jobs]) else None

    def _told(self, workload: Json, there: str) -> Iterator[tuple[Resource, ObjectKey]]:
        facts = WORKLOADS.of(workload)
        row = self.adapters.get(facts.owner.gvk) if facts.owner is not None else None
        if facts.owner is None or row is None or row.traits.workload_only:
            return
        names = owner_names(workload, facts.owner.gvk) if facts.has_members else (facts.owner.name,)
        yield from ((row.resource, ObjectKey(there, name)) for name in names)
