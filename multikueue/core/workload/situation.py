"""A snapshot with the facts the rows of the plan ask about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property

import attrs

from multikueue.core.dispatchers.dispatcher import Dispatcher
from multikueue.core.model.adapter import JobAdapter, Stamp
from multikueue.core.model.copies import is_copy_of, is_spent, spec_digest, workload_copy
from multikueue.core.model.labels import ATTEMPT_ANNOTATION
from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, is_terminating
from multikueue.core.model.workloads import (
    OUT_OF_SYNC,
    CheckState,
    Owner,
    attempt,
    check_state,
    cluster_name,
    component_index,
    finish_reason,
    has_members,
    has_quota,
    is_admitted,
    is_elastic,
    is_evicted,
    is_finished,
    is_of_attempt,
    nominated,
    owner,
    pod_counts,
)
from multikueue.core.workload.drift import must_be_replaced
from multikueue.core.workload.snapshot import JobCopy, PlanSettings, Snapshot, Worker


@attrs.frozen(eq=False)
class Situation:
    """One Workload as the plan sees it. Read-only; the derived facts are computed once."""

    snapshot: Snapshot
    settings: PlanSettings
    dispatcher: Dispatcher
    now: datetime

    @property
    def workload(self) -> Json:
        """The manager's Workload. Only rows that know it exists may ask."""
        assert self.snapshot.workload is not None, "a row for live workloads was asked about a deleted one"
        return self.snapshot.workload

    @property
    def check(self) -> str:
        """The name of our check on it."""
        assert self.snapshot.check is not None, "a row for our workloads was asked about somebody else's"
        return self.snapshot.check

    @property
    def adapter(self) -> JobAdapter:
        """How to handle the job's kind."""
        assert self.snapshot.adapter is not None, "a row for known kinds was asked about an unknown one"
        return self.snapshot.adapter

    @property
    def workers(self) -> Sequence[Worker]:
        """All known workers."""
        return self.snapshot.workers

    @cached_property
    def state(self) -> CheckState:
        """State of our check."""
        return check_state(self.workload, self.check)

    @cached_property
    def attempt(self) -> str:
        """The attempt that new copies are made for."""
        return attempt(self.workload)

    @cached_property
    def new_copy(self) -> Json:
        """The Workload to create on workers: the same object for all of them, to be read only."""
        return workload_copy(self.workload, self.stamp)

    @cached_property
    def _spec(self) -> str:
        return spec_digest(self.workload)

    def must_be_replaced(self, copy: Json) -> bool:
        """Whether a copy differs in something that cannot be patched."""
        return must_be_replaced(self.workload, copy, self._spec)

    @cached_property
    def attempts_being_evicted(self) -> frozenset[str]:
        """What copies of the attempt that an eviction ends are marked with: Kueue counts the eviction as it begins."""
        return frozenset((self.attempt, attempt(self.workload, evictions_ago=1)))

    @cached_property
    def owner(self) -> Owner | None:
        """The job's kind and name."""
        return owner(self.workload)

    @cached_property
    def has_members(self) -> bool:
        """Whether several jobs stand behind it: see `core.workload.members`."""
        return has_members(self.workload)

    @property
    def jobs(self) -> Mapping[str, Json]:
        """The manager's jobs by name: one for most kinds."""
        return self.snapshot.jobs

    @cached_property
    def job(self) -> Json | None:
        """The manager's job, any of several; None while none can be seen."""
        if self.owner is None:
            return None
        named = self.jobs.get(self.owner.name)
        return next(iter(self.jobs.values()), None) if named is None and self.has_members else named

    def job_of(self, copy: Json) -> Json | None:
        """The manager's job that a copy was made of; None if it cannot be seen, or is another by now."""
        job = self.jobs.get(copy["metadata"]["name"])
        return job if job is not None and is_copy_of(copy, job) else None

    @property
    def stamp(self) -> Stamp:
        """What copies made now are marked with."""
        counts = pod_counts(self.workload) if is_elastic(self.workload) else {}
        return Stamp(self.settings.origin, self.snapshot.key.name, self.attempt, counts)

    @property
    def finished(self) -> bool:
        """Whether the job has ended."""
        return is_finished(self.workload)

    @property
    def has_quota(self) -> bool:
        """Whether the manager holds quota for it."""
        return has_quota(self.workload)

    @property
    def evicted(self) -> bool:
        """Whether the manager is taking it out of its quota."""
        return is_evicted(self.workload)

    @property
    def assigned_to(self) -> str | None:
        """The worker that keeps it."""
        return cluster_name(self.workload)

    @cached_property
    def group(self) -> tuple[Json, ...]:
        """The other Workloads of its job, if the job has one per replica."""
        if component_index(self.workload) is None:
            return ()
        mine = _owner_uids(self.workload)
        return tuple(
            one for one in self.snapshot.siblings if not is_terminating(one) and mine.intersection(_owner_uids(one))
        )

    @cached_property
    def group_places(self) -> tuple[str, ...]:
        """The workers that have others of its group."""
        return tuple(sorted({name for one in self.group if (name := cluster_name(one)) is not None}))

    @property
    def group_place(self) -> str | None:
        """The worker that its group is on."""
        return next(iter(self.group_places), None)

    def jobs_on(self, worker: Worker) -> list[Json]:
        """The copies of its jobs on that worker: one for most kinds."""
        if self.has_members:
            return [copy.object for copy in worker.jobs if copy.resource == self.adapter.resource]
        job = self.job_on(worker)
        return [] if job is None else [job]

    def have_ended(self, jobs: Sequence[Json]) -> bool:
        """Whether none of these jobs goes on. There must be one."""
        return bool(jobs) and all(self.adapter.outcome(job) is not None for job in jobs)

    def job_on(self, worker: Worker) -> Json | None:
        """The copy of the job on that worker: this Workload's own, or the one it shares with its group."""
        if self.has_members:
            return next(iter(self.jobs_on(worker)), None)
        shared = component_index(self.workload) is not None
        return self._owners_job((*worker.jobs, *worker.shared) if shared else worker.jobs)

    def shared_job_on(self, worker: Worker) -> Json | None:
        """The copy of the job on that worker, where it belongs to another Workload."""
        return self._owners_job(worker.shared)

    def _owners_job(self, copies: Sequence[JobCopy]) -> Json | None:
        if self.owner is None:
            return None
        for copy in copies:
            if copy.resource == self.adapter.resource and copy.object["metadata"]["name"] == self.owner.name:
                return copy.object
        return None

    def current(self, worker: Worker) -> Json | None:
        """The Workload copy on that worker, if it was made for this attempt."""
        copy = worker.workload
        return copy if copy is not None and is_of_attempt(copy, self.attempt) else None

    @cached_property
    def winner(self) -> Worker | None:
        """The worker that takes the Workload while none is assigned.

        One that has the job already keeps it, out of reach too; otherwise it is the first of the config that has
        admitted it, of those it is offered to if there are any: they may be down to the one that was chosen before.
        Clocks of workers play no part. Where the rest of its group is, no other worker takes it.
        """
        places = self.group_places or [worker.name for worker in self.workers]
        holding = [worker for worker in self.workers if worker.name in places and self._holds(worker)]
        admitted = [worker for worker in holding if worker.can_run]
        starting = [worker for worker in self.workers if worker.starting]
        if starting:  # whether or not it can be reached: the job may be there already
            return next((worker for worker in starting if worker in admitted), None)
        having = [worker for worker in holding if self.has_it(worker)]
        offered = [worker for worker in admitted if worker.name in nominated(self.workload)]
        return next(iter(having or offered or admitted), None)

    def has_it(self, worker: Worker) -> bool:
        """Whether this attempt's job is there. Out of sight only all of it counts: nothing could be added."""
        jobs = [job for job in self.jobs_on(worker) if self.is_current(worker, job)]
        return len(jobs) == len(self.jobs) > 0 if not worker.can_run else bool(jobs)

    def is_current(self, worker: Worker, job: Json) -> bool:
        """Whether a job there is this attempt's. One that others of the group run on is nobody's leftover."""
        return is_of_attempt(job, self.attempt) or job is self.shared_job_on(worker)

    def _holds(self, worker: Worker) -> bool:
        """Whether it has admitted this attempt, and is not about to give it up again."""
        if worker.workload is None:
            return self.has_ended_on(worker)
        copy = self.current(worker)
        if copy is None or not is_admitted(copy):
            return False
        if is_finished(copy):  # out of sync with the job it has: the user is told so once it is assigned
            return not is_spent(copy) or (finish_reason(copy) == OUT_OF_SYNC and self.job_on(worker) is not None)
        leaving = worker.removing or is_evicted(copy) or is_terminating(copy) or is_spent(copy)
        return not leaving and not self.must_be_replaced(copy)

    def has_ended_on(self, worker: Worker) -> bool:
        """Whether the job has run to its end there for this attempt, though its Workload copy is gone (retention)."""
        jobs = self.jobs_on(worker) if worker.workload is None else []
        if not jobs or any(annotations_of(job).get(ATTEMPT_ANNOTATION) != self.attempt for job in jobs):
            return False
        return self.adapter.outcome_of(jobs) is not None


def _owner_uids(workload: Json) -> set[str]:
    return {str(reference.get("uid")) for reference in workload["metadata"].get("ownerReferences") or []}
