"""Slices of an elastic job: when it grows, a new Workload takes the place of the old one, and the job runs on.

Kueue finishes the old slice (`WorkloadSliceReplaced`) and gives the new one its `clusterName` with its quota. So the
new slice gets its copy on that worker alone; once that is admitted, the job copy gets the new size and the new slice's
name. Until then the old slice's copies stay: the job runs on their quota. A job of a kind that cannot change its size
keeps them to its end, and the user is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from multikueue.core.model import workloads
from multikueue.core.model.adapter import Outcome
from multikueue.core.model.copies import prebuilt_workload
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import is_terminating, name_of
from multikueue.core.model.started import is_started
from multikueue.core.model.worker_states import Unusable
from multikueue.core.workload.check_updates import admit, patch_copy, retry_vanished, send_back_evicted
from multikueue.core.workload.effects import AnnounceWorkload, CreateJob, CreateWorkload, Effect, PatchJob, Plan
from multikueue.core.workload.ending import sync_end, sync_status
from multikueue.core.workload.following import awaits_ready, begin_anew, follow_end, send_back, while_seen, why_no_job
from multikueue.core.workload.leftovers import ending_jobs, wait_for, waits_are_over
from multikueue.core.workload.removal import delete_workload, remove
from multikueue.core.workload.seen.graces import SUCCESSOR, VANISHED
from multikueue.core.workload.seen.runs import assumed_for
from multikueue.core.workload.seen.situation import Situation, certain
from multikueue.core.workload.seen.snapshot import Worker
from multikueue.core.workload.ways import Way, given, otherwise, wait


def leave_to_successor(situation: Situation) -> Plan:
    """The slice was replaced, and its job runs on. Remove its Workload copies where no job names them any more.

    Remove the job as well once no slice runs, on that worker or anywhere: it was out of sight when it should have been
    stopped. Where jobs cannot be seen now, the next slice must have left the worker first: then only this slice's copy
    is there to stop the job by.
    """
    removed: list[Effect] = []
    for worker in situation.workers:
        if _no_slice_runs_on(situation, worker):
            removed += remove(situation, attrs.evolve(worker, jobs=worker.all_jobs, shared=()))
        elif worker.in_sight and not _leads_to(situation, worker):
            removed += delete_workload(situation, worker)
    return Plan(removed)


def _no_slice_runs_on(situation: Situation, worker: Worker) -> bool:
    """Whether no slice runs on the worker any more, and none ended there, whose status may still have to be synced.

    A job in sight is stopped by the slice that has it. Where jobs have not been seen for longer than is waited, a slice
    that has left the worker has nothing there to stop it by.
    """
    siblings = [other for other in situation.snapshot.siblings if not workloads.is_replaced(other)]
    if not siblings:  # its successor may just not be known yet, or be about to be made again
        return situation.snapshot.quiet_for >= SUCCESSOR
    runs_on = worker.in_sight or assumed_for(situation, worker) or not all(map(workloads.has_had_quota, siblings))
    if situation.is_shared and runs_on:
        return False
    return worker.name not in map(workloads.cluster_name, siblings)


def _leads_to(situation: Situation, worker: Worker) -> bool:
    """Whether a job there still names this Workload: a worker's Kueue stops a job whose Workload is gone."""
    named = situation.snapshot.key.name
    return any(prebuilt_workload(copy.object) == named for copy in worker.all_jobs)


def is_recorded_slice(situation: Situation) -> bool:
    """Whether a slice that takes another's place has a worker that has not taken it yet. A first slice is a new job."""
    if situation.traits.workload_only or situation.recorded_on is None:
        return False
    return awaits_ready(situation) and workloads.replaces_slice(situation.workload)


def _has_just_gone(situation: Situation) -> bool:
    """Whether the job has run, and is gone from the worker since a moment ago: its end may not show yet."""
    job, worker = situation.job, situation.recorded
    if situation.any_job_on(worker) is not None or not worker.facts.is_admitted or worker.facts.is_evicted:
        return False
    has_run = worker.facts.has_had_owner or (job is not None and is_started(job))
    return has_run and situation.snapshot.quiet_for < VANISHED


def _refused_anew(situation: Situation) -> str:
    """Why no job can be created where there is none, and none has stood behind the slice: it was evicted."""
    worker = situation.recorded
    offered = situation.this_copy(worker) is not None and not worker.facts.has_had_owner
    return why_no_job(worker) if offered and situation.any_job_on(worker) is None else ""


def _gets_nothing_more(situation: Situation) -> bool:
    worker = situation.recorded
    return worker.removed and worker.is_empty and situation.any_job_on(worker) is None


def _end_at_old_size(situation: Situation) -> tuple[Json, Outcome] | None:
    """The job that ends while the slice waits to be admitted there, and how: that is this slice's end, too."""
    job = situation.any_job_on(situation.recorded)
    if job is None or situation.job_of(job) is None or (outcome := situation.adapter.outcome(job)) is None:
        return None
    return job, outcome


def _create_copy(situation: Situation) -> Plan:
    worker = situation.recorded
    return Plan([CreateWorkload(worker.name, situation.copy_for(worker))] if worker.can_run else ())


def _is_stale(situation: Situation) -> bool:
    """Whether the Workload copy there must be replaced by another one."""
    worker, copy = situation.recorded, situation.recorded_copy
    return situation.this_copy(worker) is None or worker.facts.is_spent or situation.must_be_replaced(copy)


def _of_fixed_size(situation: Situation) -> Json | None:
    """The job there that runs for an earlier slice and cannot change its size; None if there is none."""
    job = situation.any_job_on(situation.recorded)
    if job is None or situation.traits.resizable or prebuilt_workload(job) == situation.snapshot.key.name:
        return None
    return job


def _keep_size(situation: Situation, job: Json) -> Plan:
    """Let it run on with the quota of the slice it was made for: more of it would not be used."""
    worker = situation.recorded
    kind, name = situation.adapter.resource.gvk.kind, name_of(job)
    runs = f'{kind} "{name}" runs on worker cluster "{worker.name}" with the size it was started with'
    warning = AnnounceWorkload("Warning", f"{runs}, which this kind cannot change: create it again to have another")
    return Plan((warning, *delete_workload(situation, worker), *sync_status(situation, [job])))


def _take_over(situation: Situation) -> Iterator[Effect]:
    """The slice is admitted: give it the job, at its size; then record it."""
    local, worker = certain(situation.job, "the row before waits for it"), situation.recorded
    job = situation.any_job_on(worker)
    if job is None:
        if worker.facts.has_had_owner:
            yield retry_vanished(situation)  # it ran for this very slice: it is not made a second time
        elif not isinstance(worker.kind, Unusable):
            yield CreateJob(worker.name, situation.adapter.resource, situation.job_copy_for(worker, local))
        return
    patch = situation.adapter.forward_patch(local, job, situation.stamp_on(worker))
    if patch is not None:
        yield PatchJob(worker.name, situation.adapter.resource, ObjectKey.of(job), patch)
    elif prebuilt_workload(job) == situation.snapshot.key.name:
        yield from admit(situation, worker.name, workloads.CheckState.READY, situation.recorded_copy)
    yield from sync_status(situation, [job])


def _evicted_slice(situation: Situation) -> Json | None:
    """The copy of the slice that the job there runs for, if its worker has evicted it."""
    worker, job = situation.recorded, situation.any_job_on(situation.recorded)
    of_job = (copy for copy in worker.slices if job is None or prebuilt_workload(job) == copy["metadata"]["name"])
    return next((copy for copy in of_job if workloads.is_evicted(copy) and not is_terminating(copy)), None)


follow_slice: Final = while_seen(
    Way("ends there", lambda seen: bool(seen.this_copy(seen.recorded)) and seen.recorded.facts.is_finished, follow_end),
    Way("just gone", _has_just_gone, lambda _: Plan().within(VANISHED)),
    Way("refused", *given(_refused_anew, send_back)),
    Way("removed worker", _gets_nothing_more, begin_anew),
    Way("has ended", *given(_end_at_old_size, lambda seen, end: sync_end(seen, [end[0]], end[1]))),
    Way("its job goes", *given(lambda seen: ending_jobs(seen.recorded), wait_for)),
    waits_are_over,
    Way("fixed size", *given(_of_fixed_size, _keep_size)),
    Way("create copy", lambda seen: seen.recorded.copy is None, _create_copy),
    Way("stale copy", _is_stale, lambda seen: Plan(delete_workload(seen, seen.recorded))),
    Way("copy goes", lambda seen: seen.recorded.facts.is_leaving, wait),  # or its worker queues it again
    Way("take over", lambda seen: seen.recorded.facts.is_admitted, lambda seen: Plan(_take_over(seen))),
    Way("evicted there", *given(_evicted_slice, lambda seen, copy: Plan(send_back_evicted(seen, copy)))),
    Way("waits there", otherwise, lambda seen: Plan(patch_copy(seen, seen.recorded))),
)
"""Bring a slice to the worker that runs its job, and hand the job over to it."""
