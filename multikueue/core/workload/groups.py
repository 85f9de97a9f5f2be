"""Groups: several Workloads of one job, and several jobs of one Workload.

A LeaderWorkerSet has one Workload per replica, and all of them go to the same worker: the first is dispatched as any
Workload, the others are nominated for exactly that worker, so that Kueue's webhook accepts it as their `clusterName`.

A pod group is one Workload with several jobs, its pods. The copies on the worker follow the manager's: one that is new
gets a copy, one that is gone takes its copy along. What has ended, or is being deleted, is not run again; what the
manager's Kueue has started on the manager itself is not copied.

Which of several Workloads of one job carries its copy, says `seen/attribution.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from multikueue.core.model.copies import is_copy_of
from multikueue.core.model.names import Json
from multikueue.core.model.objects import is_terminating, name_of
from multikueue.core.model.started import runs_here
from multikueue.core.model.worker_states import Unusable
from multikueue.core.model.workload_facts import WORKLOADS
from multikueue.core.model.workloads import CheckState, cluster_name, component_index
from multikueue.core.workload.effects import AnnounceWorkload, CreateJob, Effect, Plan
from multikueue.core.workload.removal import delete_job
from multikueue.core.workload.seen.situation import Situation
from multikueue.core.workload.seen.snapshot import Worker


def tell_split(situation: Situation) -> Plan:
    """The rest of the group is on several workers: this Workload cannot follow all. Somebody must evict one part."""
    where = " and ".join(f'"{name}"' for name in situation.group_workers)
    return Plan([AnnounceWorkload("Warning", f"Component workloads are assigned to different clusters: {where}")])


def must_wait(situation: Situation) -> bool:
    """Whether Workloads of the group are missing, or one with a lower index has to be dispatched first.

    A Workload that is deactivated or Finished gets no worker: the others run without it.
    """
    index, job = situation.facts.component_index, situation.job
    if index is None or job is None:
        return False
    if len(situation.group) + 1 < situation.adapter.expected_workloads(job):
        return True
    coming = [facts for part in situation.group if (facts := WORKLOADS.of(part)).is_active and not facts.is_finished]
    places = (facts.component_index for facts in coming)
    is_later = index < 0 or any(place is not None and 0 <= place < index for place in places)
    return is_later and not situation.group_workers


def creates_for_group(situation: Situation) -> bool:
    """Whether this Workload is the one of its group that creates the job: the first of those on its worker."""
    index = situation.facts.component_index
    here = (part for part in situation.group if cluster_name(part) == situation.recorded_on)
    return index is None or all(index < (component_index(part) or 0) for part in here)


def missing_on(situation: Situation, worker: Worker) -> list[Json]:
    """The manager's jobs that should have a copy there and have none, in the order of their names."""
    taken = {name_of(copy.object) for copy in worker.all_jobs if copy.resource == situation.adapter.resource}
    jobs = sorted(situation.snapshot.jobs.items())
    return [job for name, job in jobs if name not in taken and _should_run(situation, job)]


def create_missing(situation: Situation, worker: Worker) -> Iterator[Effect]:
    """Make the copies that are missing, unless none may be made there."""
    if situation.traits.workload_only or isinstance(worker.kind, Unusable):
        return
    for job in missing_on(situation, worker):
        yield CreateJob(worker.name, situation.adapter.resource, situation.job_copy_for(worker, job))


def remove_obsolete(situation: Situation, worker: Worker) -> Iterator[Effect]:
    """Remove the copies of members that are gone, or about to go, or another of the same name by now."""
    for copy in worker.jobs:
        local = situation.snapshot.jobs.get(name_of(copy.object))
        obsolete = local is None or is_terminating(local) or not is_copy_of(copy.object, local)
        if obsolete and copy.resource == situation.adapter.resource:
            yield from delete_job(situation, worker, copy)


def _should_run(situation: Situation, job: Json) -> bool:
    if is_terminating(job) or (situation.traits.keeps_check_pending and _starts_here(situation, job)):
        return False
    return not situation.facts.has_members or situation.adapter.outcome(job) is None


def _starts_here(situation: Situation, job: Json) -> bool:
    """Whether the manager's Kueue has started a pod on the manager, or does so now that the check is Ready."""
    return runs_here(job) or (situation.state is CheckState.READY and bool(situation.adapter.why_free(job)))
