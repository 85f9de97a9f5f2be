"""Groups: several Workloads of one job, and several jobs of one Workload.

A LeaderWorkerSet has one Workload per replica, and all of them go to the same worker: the first is dispatched as any
Workload, the others are nominated for exactly that worker, so that Kueue's webhook accepts it as their `clusterName`.

A pod group is one Workload with several jobs, its pods. The copies on the worker follow the manager's: one that is new
gets a copy, one that is gone takes its copy along. What has ended, or is being deleted, is not run again; what the
manager's Kueue has started on the manager itself is not copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import attrs

from multikueue.core.dispatchers.dispatcher import Candidates, Dispatcher, Nomination
from multikueue.core.dispatchers.guarded import Guarded
from multikueue.core.model.copies import is_copy_of
from multikueue.core.model.names import Json
from multikueue.core.model.objects import is_terminating, name_of
from multikueue.core.model.started import runs_here
from multikueue.core.model.workloads import CheckState, cluster_name, component_index
from multikueue.core.workload.effects import AnnounceWorkload, CreateJob, Effect, Plan
from multikueue.core.workload.ending import delete_job
from multikueue.core.workload.situation import Situation
from multikueue.core.workload.snapshot import JobCopy, Unusable, Worker


@attrs.frozen
class Follow:
    """A dispatcher that nominates the worker that has the rest of the group."""

    cluster: str

    def nominate(self, workload: Json, candidates: Candidates, now: datetime) -> Nomination:
        """See `Dispatcher.nominate`."""
        del workload, now
        return Nomination((self.cluster,) if self.cluster in candidates.configured else ())


def chooser(situation: Situation) -> Dispatcher:
    """What chooses the workers: the rest of the group, if a worker has it, or the operator's dispatcher."""
    names = situation.group_workers
    return Follow(names[0]) if names else Guarded(situation.dispatcher)


def is_split(situation: Situation) -> bool:
    """Whether the rest of the group is on several workers: this Workload cannot follow all."""
    return len(situation.group_workers) > 1


def tell_split(situation: Situation) -> Plan:
    """Warn: somebody must evict one part or the other."""
    where = " and ".join(f'"{name}"' for name in situation.group_workers)
    return Plan((AnnounceWorkload("Warning", f"Component workloads are assigned to different clusters: {where}"),))


def must_wait(situation: Situation) -> bool:
    """Whether parts of the group are missing, or this part would follow an earlier one that has no worker yet."""
    index = situation.facts.component_index
    job = situation.job
    if index is None or job is None:
        return False
    if len(situation.group) + 1 < situation.adapter.expected_workloads(job):
        return True
    if situation.group_workers:
        return False
    others = [component_index(one) for one in situation.group]
    return index < 0 or any(other is not None and 0 <= other < index for other in others)


def creates_for_group(situation: Situation) -> bool:
    """Whether this Workload is the one of its group that creates the job: the first of those on its worker."""
    index = situation.facts.component_index
    if index is None:
        return True
    here = (one for one in situation.group if cluster_name(one) == situation.assigned_to)
    return all(index < (component_index(one) or 0) for one in here)


def missing_on(situation: Situation, worker: Worker) -> list[Json]:
    """The manager's jobs that should have a copy there and have none, in the order of their names."""
    taken = {name_of(copy.object) for copy in (*worker.jobs, *worker.shared) if _is_of_kind(situation, copy)}
    jobs = sorted(situation.snapshot.jobs.items())
    return [job for name, job in jobs if name not in taken and _should_run(situation, job)]


def create_missing(situation: Situation, worker: Worker) -> Iterator[Effect]:
    """Make the copies that are missing, unless none may be made there."""
    if situation.traits.workload_only or isinstance(worker.kind, Unusable):
        return
    stamp = situation.stamp_on(worker)
    for job in missing_on(situation, worker):
        yield CreateJob(worker.name, situation.adapter.resource, situation.adapter.copy(job, stamp))


def remove_obsolete(situation: Situation, worker: Worker) -> Iterator[Effect]:
    """Remove the copies of members that are gone, or about to go, or another of the same name by now."""
    if not situation.facts.has_members:
        return
    for copy in worker.jobs:
        local = situation.snapshot.jobs.get(name_of(copy.object))
        obsolete = local is None or is_terminating(local) or not is_copy_of(copy.object, local)
        if obsolete and _is_of_kind(situation, copy):
            yield from delete_job(worker.name, copy)


def _should_run(situation: Situation, job: Json) -> bool:
    if is_terminating(job) or (situation.traits.keeps_check_pending and _starts_here(situation, job)):
        return False
    return not situation.facts.has_members or situation.adapter.outcome(job) is None


def _starts_here(situation: Situation, job: Json) -> bool:
    """Whether the manager's Kueue has started a pod on the manager, or does so now that the check is Ready."""
    return runs_here(job) or (situation.state is CheckState.READY and bool(situation.adapter.why_free(job)))


def _is_of_kind(situation: Situation, copy: JobCopy) -> bool:
    return copy.resource == situation.adapter.resource
