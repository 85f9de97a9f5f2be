"""How what a run has left on a worker goes: in one order, whatever the reason and the kind.

1. *Stop.* The worker's Kueue is asked to stop the run, so that the kind's controller ends its pods in its own way. It
   has `STOP` for that, and what it has suspended its pods' grace period. Where it cannot be asked, or has given no
   quota, this step is left out: the next one ends pods.
2. *Delete the job copies*, in the foreground: each stays until what it owns is gone, so that it shows whether pods run.
3. *Wait.* While a job copy is seen, the run is not over: see `leftovers.earlier_runs`. No time ends that.
4. *Delete the Workload copy.* Of a pod group that is what frees its pods, once all have ended: Kueue takes its
   finalizers off them while it sees the Workload being deleted. So that copy bears Kueue's finalizer, and nobody else
   takes it off while a pod is seen. One that has Finished frees them as it is, and has that finalizer no more: it goes
   after the pods.

What never ran, or has ended by itself, goes at once and in the background.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import attrs

from multikueue.core.model.conditions import deleted_at
from multikueue.core.model.copies import prebuilt_workload
from multikueue.core.model.grace import pod_grace
from multikueue.core.model.kinds import POD
from multikueue.core.model.labels import FOREGROUND_FINALIZER, WORKLOAD_FINALIZER
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import finalizers_of, is_terminating, resource_version, uid
from multikueue.core.model.workloads import has_members, is_elastic, is_finished
from multikueue.core.workload.check_updates import deactivation
from multikueue.core.workload.effects import DeleteJob, DeleteWorkload, Effect, PatchWorkload
from multikueue.core.workload.seen.graces import FINALIZER, HELD_UP, STOP
from multikueue.core.workload.seen.runs import may_have_pods, may_run_beside, may_start_unseen
from multikueue.core.workload.seen.situation import Situation
from multikueue.core.workload.seen.snapshot import JobCopy, Worker


def remove_attempt(situation: Situation, worker: Worker, *, this: bool) -> Iterator[Effect]:
    """Remove this attempt's copies on a worker, or all that are not this attempt's: no object is deleted twice."""
    jobs = tuple(job for job in worker.jobs if situation.is_this(worker, job.object) is this)
    copy = worker.copy if (situation.this_copy(worker) is not None) is this else None
    return remove(situation, attrs.evolve(worker, jobs=jobs, copy=copy)) if jobs or copy else iter(())


def remove_all(situation: Situation, keep: ClusterName | None = None) -> Iterator[Effect]:
    """Remove everything everywhere, but on the worker named `keep`."""
    for worker in situation.workers:
        if worker.name != keep:
            yield from remove(situation, worker)


def remove(situation: Situation, worker: Worker) -> Iterator[Effect]:
    """The next step towards a worker without these copies.

    A job that belongs to another Workload stays, and so does what it needs; see `keeps_job_alive`.

    Args:
        situation: the Workload.
        worker: with the copies to remove. Nothing is done while it is out of reach: once it reconnects
            there is another reconcile.
    """
    if not worker.reachable or worker.is_empty:
        return
    copy = None if keeps_job_alive(worker) else worker.copy
    if copy is not None and _lacks_finalizer(worker, copy):  # an older daemon made it
        yield _patch_finalizers(worker, copy, [*finalizers_of(copy), WORKLOAD_FINALIZER])
        return
    runs = [job for job in worker.jobs if may_have_pods(situation, job.object)]
    request = tuple(stop(situation, attrs.evolve(worker, copy=copy, jobs=tuple(runs))))
    yield from request
    waits = bool(request) or stop_left(situation, worker) > timedelta(0)
    for job in worker.jobs:
        stoppable = copy is not None and job in runs and _is_stopped_with(copy, job.object)
        if request and stoppable:
            yield from delete_job(situation, worker, job, unless_stopped=True)
        elif not (waits and stoppable) and not _counting_left(situation, job.object):
            yield from delete_job(situation, worker, job)
    runs_on = bool(runs) or may_run_beside(situation, worker, asked=waits)
    # Kueue still lets go of a group's pods because their Workload copy has Finished: it has taken its finalizer off
    # that by then, so nothing would be left once it is deleted.
    frees_pods = copy is not None and bool(worker.jobs) and has_members(copy) and is_finished(copy)
    if copy is not None and not runs_on and not frees_pods:
        yield from delete_workload(situation, worker)


def _lacks_finalizer(worker: Worker, copy: Json) -> bool:
    """Whether the pods of a group, seen or unseen, would never be let go if its Workload copy were deleted now."""
    stays = is_terminating(copy) or is_finished(copy) or (worker.in_sight and not worker.jobs)
    return has_members(copy) and not stays and WORKLOAD_FINALIZER not in finalizers_of(copy)


def stop(situation: Situation, worker: Worker) -> Iterator[Effect]:
    """Ask a worker's Kueue to stop what runs there, unless that was done, or it has stopped it by itself.

    One that has evicted it writes the copy itself: it is asked only where nothing comes of that.
    """
    copy, facts = worker.copy, worker.facts
    if copy is None or not facts.can_be_asked or not (worker.jobs or may_run_beside(situation, worker, asked=False)):
        return
    is_gone, waited = situation.snapshot.workload is None, situation.snapshot.quiet_for >= HELD_UP
    goes = any(is_terminating(job.object) for job in worker.jobs)
    if waited or (facts.runs and (is_gone or not goes)) or may_start_unseen(worker):
        yield deactivation(situation.snapshot.workload, worker.name, copy, situation.now)


def _is_stopped_with(copy: Json, job: Json) -> bool:
    """Whether a job ends when its Workload copy is stopped: one that runs for an earlier slice does not."""
    named = prebuilt_workload(job)
    return not is_terminating(job) and named in ("", copy["metadata"]["name"])


def stop_left(situation: Situation, worker: Worker) -> timedelta:
    """For how much longer a worker's Kueue is given to stop what it was asked to; zero: it has, or has had the time.

    What it has suspended, and holds quota for, has its pods' grace period: a RayCluster tells that they are gone, but
    not while it is deleted, and one that is cleaned up after that is seen for minutes.
    """
    facts, adapter = worker.facts, situation.snapshot.adapter
    if not facts.has_quota or facts.is_finished or facts.is_terminating or (since := facts.stops_since) is None:
        return timedelta(0)
    suspended = adapter is not None and any(adapter.is_stopped_here(job.object) for job in worker.jobs)
    limit = STOP + suspended * min(pod_grace(worker.copy or {}), situation.settings.pod_grace_limit)
    return timedelta(0) if situation.snapshot.quiet_for >= limit else _left(limit, situation.now - since)


def _counting_left(situation: Situation, job: Json) -> timedelta:
    """For how much longer the kind's controller is given to count pods that have ended: the job may have, too."""
    counts = situation.snapshot.adapter is not None and situation.adapter.is_counting(job)
    return _left(STOP, situation.snapshot.quiet_for) if counts else timedelta(0)


def steps_in(situation: Situation) -> Iterator[timedelta]:
    """In what time removals take their next step without an event."""
    for worker in (worker for worker in situation.workers if worker.reachable):
        left = [_counting_left(situation, job.object) for job in worker.jobs]
        if worker.copy is not None:
            stops = bool(worker.jobs) or situation.traits.workload_only
            left.append(stop_left(situation, worker) if stops else finalizer_left(situation, worker.copy))
        yield from filter(None, left)


def finalizer_left(situation: Situation, copy: Json) -> timedelta:
    """For how much longer Kueue's finalizer on a Workload copy that is being deleted is left to Kueue."""
    deleted = deleted_at(copy)
    if deleted is None or WORKLOAD_FINALIZER not in finalizers_of(copy):
        return timedelta(0)
    return _left(FINALIZER, situation.now - deleted)


def _left(limit: timedelta, passed: timedelta) -> timedelta:
    """What is left of a span that another cluster's clock may have begun: one that is to come has passed."""
    return limit - passed if timedelta(0) <= passed < limit else timedelta(0)


def delete_job(
    situation: Situation, worker: Worker, job: JobCopy, *, unless_stopped: bool = False
) -> Iterator[DeleteJob]:
    """Delete one job copy, unless that is under way.

    What somebody has begun to delete in the background goes on to run while anything holds it: a second deletion, in
    the foreground, ends its pods at once. Pods own nothing.
    """
    foreground = job.resource != POD and may_have_pods(situation, job.object)
    goes = is_terminating(job.object)
    if goes and (not foreground or job.deleted_here or FOREGROUND_FINALIZER in finalizers_of(job.object)):
        return
    key, of = ObjectKey.of(job.object), uid(job.object)
    yield DeleteJob(worker.name, job.resource, key, of, "Foreground" if foreground else "Background", unless_stopped)


def delete_workload(situation: Situation, worker: Worker) -> Iterator[Effect]:
    """Delete the Workload copy. Kueue's finalizer is Kueue's to take off, unless it does not and no job is seen."""
    copy, has_jobs = worker.copy, bool(worker.jobs) or not worker.in_sight
    if copy is None:
        return
    if not is_terminating(copy):
        yield DeleteWorkload(worker.name, ObjectKey.of(copy), uid(copy), resource_version(copy))
    elif WORKLOAD_FINALIZER in finalizers_of(copy) and not has_jobs and not finalizer_left(situation, copy):
        yield _patch_finalizers(worker, copy, [name for name in finalizers_of(copy) if name != WORKLOAD_FINALIZER])


def _patch_finalizers(worker: Worker, copy: Json, finalizers: list[str]) -> Effect:
    metadata = {"uid": uid(copy), "resourceVersion": resource_version(copy), "finalizers": finalizers or None}
    return PatchWorkload(worker.name, ObjectKey.of(copy), {"metadata": metadata})


def keeps_job_alive(worker: Worker) -> bool:
    """Whether an elastic job there, which a newer slice carries by now, still names the Workload copy.

    The worker's Kueue would stop the job without it. The newer slice soon gives the job its own name.
    """
    name = worker.copy["metadata"]["name"] if worker.copy is not None else None
    return any(prebuilt_workload(copy.object) == name and is_elastic(copy.object) for copy in worker.shared)
