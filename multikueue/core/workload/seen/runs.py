"""Where a job may still run, until when, and why: the one place that says so. How long, is in `graces`.

See `leftovers` for what is seen of earlier attempts.

This attempt's job is created on the recorded worker only, so at most one cluster has it. But with the quota of an
evicted Workload its `clusterName` goes, and the manager's Kueue may reserve quota again before the earlier job has been
seen to stop. Nobody else may be recorded before that is clear: the job would run twice.

Its questions, from one object to all workers:

| asked of | seen | unseen |
|---|---|---|
| one job copy | `may_have_pods`: it has pods; `may_run`: or may get some | |
| one worker | `may_run_of_gone`: the Workload is gone | `may_run_beside`; `may_start_unseen` |
| the Workload | `may_run_anywhere` | `possible_runs`: where, and until when; `blocking`: those in the way of a record |
| a worker that has not stopped it | | `unstopped`; `stuck`: for so long that somebody has to act |
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

import attrs

from multikueue.core.model import adapter as kinds
from multikueue.core.model import giving_up, workloads
from multikueue.core.model import worker_states as states
from multikueue.core.model.conditions import created_at
from multikueue.core.model.grace import pod_grace
from multikueue.core.model.marks import Whose
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import is_terminating, uid, was_changed
from multikueue.core.model.placements import last_place
from multikueue.core.model.workloads import OUT_OF_SYNC, SLICE_REPLACED
from multikueue.core.workload.seen import graces
from multikueue.core.workload.seen.attribution import has_its_name
from multikueue.core.workload.seen.situation import Situation, once
from multikueue.core.workload.seen.snapshot import JobCopy, Worker

_ZERO: Final = timedelta(0)


@attrs.frozen
class Run:
    """A worker on which a job of this Workload may run although it does not show."""

    worker: ClusterName
    until: timedelta
    """From now: nobody else is recorded before that."""
    why: str = ""
    """For the user; empty where it is a matter of seconds."""


@once
def possible_runs(situation: Situation) -> tuple[Run, ...]:
    """Every worker that may run it unseen."""
    runs = (_possible_run(situation, worker) for worker in situation.workers)
    return tuple(run for run in runs if run.until > _ZERO)


def _possible_run(situation: Situation, worker: Worker) -> Run:
    left, ends = _may_run_for(situation, worker), _left_pods_end_in(situation, worker)
    if ends > left:
        return Run(worker.name, ends, "pods of the job copy that was deleted there may still end")
    return Run(worker.name, left, "" if worker.in_sight else "it cannot be seen and may still run an earlier attempt")


def blocking(situation: Situation, chosen: Worker) -> Iterator[Run]:
    """What keeps a Workload from being recorded.

    Args:
        situation: the Workload, with quota and no worker.
        chosen: the worker about to be recorded. An earlier job there has the same name: the two exclude each other,
            but for pods of one that is gone. What is `stuck` is a leftover.
    """
    kept = {worker.name for worker in situation.workers if stuck(situation, worker) is not None}
    if not _left_pods_end_in(situation, chosen):
        kept.add(chosen.name)
    yield from (run for run in possible_runs(situation) if run.worker not in kept)
    for worker in situation.workers:
        if worker.name != chosen.name and _runs_for_other_slice(situation, worker):
            yield Run(worker.name, graces.LATE_CREATION)  # that slice has to take it away


def _may_run_for(situation: Situation, worker: Worker) -> timedelta:
    if isinstance(worker.in_flight, states.Creating):
        return graces.FIRST_ANSWER
    if worker.in_sight:
        return graces.LATE_CREATION - worker.creation.ago if isinstance(worker.creation, states.Unanswered) else _ZERO
    if unstopped(situation, worker) is not None:
        left = left_of_short_loss(situation, worker) or _pods_end_in(situation, worker)
        return left or situation.settings.worker_lost_timeout
    if _hides_only_jobs(situation, worker) and not (is_new(situation, worker) or _earlier_slices(situation)):
        return _ZERO
    return assumed_for(situation, worker) if _may_have_a_job(situation, worker) else _ZERO


def unstopped(situation: Situation, worker: Worker) -> Json | None:
    """A Workload copy on a worker in reach that its Kueue has not stopped, while jobs of the kind cannot be seen there;
    of an elastic job the copy of any slice. None: there is none.

    Its job almost certainly runs, so no time ends the wait: only the worker's Kueue, sight of the jobs, or a person.
    """
    copies = () if worker.in_sight else (worker.copy, *worker.slices)
    return next((copy for copy in copies if _is_unstopped(situation, attrs.evolve(worker, copy=copy))), None)


def _is_unstopped(situation: Situation, worker: Worker) -> bool:
    copy = worker.copy if _hides_only_jobs(situation, worker) else None
    if copy is None or is_new(situation, worker) or is_given_up(situation, worker, copy):
        return False
    # Kueue gives quota back once a job has stopped: its pods may still end.
    ends = worker.facts.gives_quota_back or _pods_end_in(situation, worker) > _ZERO
    return ends or not worker.facts.is_stopping or may_start_unseen(worker)


def _pods_end_in(situation: Situation, worker: Worker, most: timedelta = timedelta.max) -> timedelta:
    """For how much longer the pods of a job that its Kueue has stopped may be ending, where jobs cannot be seen: their
    grace period, counted from the last change of anything of the Workload; zero if its jobs, as seen last, have none.
    """
    ended = bool(worker.jobs) and not any(may_have_pods(situation, job.object) for job in worker.jobs)
    if worker.in_sight or ended or not (worker.facts.has_had_owner and worker.facts.is_stopping):
        return _ZERO
    return max(_ZERO, min(most, pod_grace(worker.copy or {})) - situation.snapshot.quiet_for)


def _left_pods_end_in(situation: Situation, worker: Worker) -> timedelta:
    """For how much longer pods of a job copy that was deleted in the background may be ending: their grace period, at
    most `podGraceLimit`. Nothing shows when they have ended."""
    if worker.pods_left_ago is None:
        return _ZERO
    grace = min(pod_grace(worker.copy or situation.snapshot.workload or {}), situation.settings.pod_grace_limit)
    return max(_ZERO, grace + graces.COLLECTION - worker.pods_left_ago)


def stuck(situation: Situation, worker: Worker) -> Json | None:
    """A Workload copy that is `unstopped` for longer than a start, a short loss, or the end of its pods as far as quota
    is kept for it: a person has to act."""
    most = min(situation.settings.pod_grace_limit, graces.LONGEST_GRACE)
    waits = not worker.answered or left_of_short_loss(situation, worker) or _pods_end_in(situation, worker, most)
    return None if waits else unstopped(situation, worker)


def _hides_only_jobs(situation: Situation, worker: Worker) -> bool:
    """Whether its Workload copy is seen and its jobs are not: what its Kueue says of the copy counts."""
    hides_jobs = worker.reachable and not worker.in_sight
    return hides_jobs and worker.copy is not None and may_be_ours(situation, worker, worker.copy)


def is_new(situation: Situation, worker: Worker) -> bool:
    """Whether its copy of this attempt is admitted and has no job yet: jobs are created on the recorded worker only.

    False for an attempt that is evicted: `clusterName` may have been set and erased before anybody saw it.
    """
    facts, had_it = worker.facts, situation.facts.is_evicted or worker.name == situation.last_worker
    return facts.is_admitted and situation.this_copy(worker) is not None and not (facts.has_had_owner or had_it)


def is_given_up(situation: Situation, worker: Worker, left: Json) -> bool:
    """Whether a person has said that nobody waits for this object."""
    return giving_up.is_given_up(uid(left), created_at(left), worker.name, worker.annotations, (situation.workload,))


def assumed_for(situation: Situation, worker: Worker) -> timedelta:
    """For how much longer a worker out of sight is assumed to have what it had; zero: for no longer.

    For one that answers, but with what cannot be read, no time runs out.
    """
    timeout, left = situation.settings.worker_lost_timeout, _ZERO
    match worker.sight:
        case states.Lost(None) | states.Opaque():
            left = timeout
        case states.Lost(datetime() as since):
            left = timeout - (situation.now - _seen_lost(situation, worker, since))
        case states.Connecting() | states.Syncing():
            left = graces.FIRST_ANSWER  # that it was lost when we started says nothing about now
        case states.Unserved(failing_for):
            left = timeout - failing_for
    return max(_ZERO, left)


def until_end_counts(situation: Situation, worker: Worker) -> timedelta:
    """For how much longer to wait for the job of a worker out of sight; then its Workload copy says how it ended.

    A worker that comes back shows its Workloads before its jobs: these have the time of a first answer, however long it
    was away. Where jobs cannot be read, the wait is over some time only for a copy that has ended.
    """
    left, quiet_for = assumed_for(situation, worker), situation.snapshot.quiet_for
    if not (worker.reachable and worker.facts.has_ended):
        return left
    return max(
        _ZERO, graces.FIRST_ANSWER - quiet_for, left - quiet_for if isinstance(worker.kind, states.Opaque) else left
    )


def left_of_short_loss(situation: Situation, worker: Worker) -> timedelta:
    """For how much longer a loss counts as short; zero: the worker is in sight, or has been lost for longer."""
    match worker.sight:
        case states.Lost(datetime() as since):
            return max(_ZERO, graces.SHORT_LOSS - (situation.now - since))
        case states.Unserved(failing_for):
            return max(_ZERO, graces.SHORT_LOSS - failing_for)
    return _ZERO


def _seen_lost(situation: Situation, worker: Worker, noted: datetime) -> datetime:
    """Since when the worker is lost; the recorded worker at the earliest since this attempt got its quota.

    It has admitted this attempt, so it was seen after that. The time on its MultiKueueCluster may be of an earlier
    loss: a process may end before it has written that the worker is back.
    """
    began = situation.facts.reserved_at if situation.recorded_on == worker.name else None
    return noted if began is None else max(noted, min(began, situation.now))


def _runs_for_other_slice(situation: Situation, worker: Worker) -> bool:
    """Whether an elastic job runs there, as far as is seen, for another slice, whose place this one did not get."""
    job = situation.shared_job_on(worker) if situation.facts.is_elastic else None
    return job is not None and situation.whose(worker, job).runs_for_it and situation.adapter.outcome(job) is None


def _may_have_a_job(situation: Situation, worker: Worker) -> bool:
    """Whether a job of this Workload may be on a worker out of sight."""
    if isinstance(worker.creation, states.Unanswered):
        return True
    if situation.traits.pods_label and worker.name == situation.last_worker and worker.pods != ():
        return True  # its copy does not tell whether its pods have ended
    known = situation.jobs_on(worker)
    if any(may_be_ours(situation, worker, job) and may_run(situation, worker, job) for job in known):
        return True
    if any(earlier_jobs(situation, worker)):
        return True
    slices = _earlier_slices(situation)
    if any(worker.name in (workloads.cluster_name(other), workloads.noted_worker(other)) for other in slices):
        return True
    if not worker.seen and any(map(workloads.has_lost_its_record, slices)):
        return True
    last = situation.last_worker
    if last is not None:
        return last == worker.name and not worker.seen
    was_evicted = situation.facts.is_evicted or workloads.evictions(situation.workload) > 0
    alone = not situation.snapshot.siblings  # else it may be a sibling that runs
    return not worker.seen and (was_evicted or (alone and _ran_with_another(situation)))


def _ran_with_another(situation: Situation) -> bool:
    """Whether the manager's job may have run with an earlier Workload, which is gone: its status shows a run, or its
    spec was changed.

    When somebody changes a job, Kueue suspends it and makes another Workload, perhaps before any status was synced. Of
    a kind whose status is not synced, age tells: the job is older than a Workload that is not its first.
    """
    jobs = situation.snapshot.jobs.values()  # none is seen of a kind that is not registered
    if not situation.traits.keeps_status:
        return any(situation.adapter.release_patch(job) is not None or was_changed(job) for job in jobs)
    made, *of_jobs = map(created_at, (situation.workload, *jobs))
    return made is not None and any(at is not None and made - at > graces.OLDER_THAN_ITS_WORKLOAD for at in of_jobs)


def earlier_jobs(situation: Situation, worker: Worker) -> Iterator[JobCopy]:
    """The job copies of earlier attempts that a worker shows, or showed last, and that may have pods.

    Each is waited for: on a worker in sight until it is gone, out of sight because it may run on.
    """
    for job in worker.all_jobs:
        if job not in worker.jobs and has_its_name(situation.snapshot, job.object):
            continue
        if situation.whose(worker, job.object) is Whose.EARLIER and may_have_pods(situation, job.object):
            yield job


def shows_a_run(situation: Situation, worker: Worker) -> bool:
    """Whether a worker shows a job copy of this Workload or of an earlier one of its job that may have pods."""
    own = (job.object for job in worker.all_jobs if situation.whose(worker, job.object).runs_for_it)
    return any(earlier_jobs(situation, worker)) or any(may_have_pods(situation, job) for job in own)


def may_be_ours(situation: Situation, worker: Worker, copy: Json) -> bool:
    """Whether a copy there may be this Workload's: its mark proves it. A copy without proof counts only on a worker of
    the config, or on one that has had the Workload; elsewhere it may be anybody's.
    """
    had_it = situation.last_worker, last_place(situation.workload)
    return situation.whose(worker, copy) is not Whose.UNPROVEN or worker.configured or worker.name in had_it


def _earlier_slices(situation: Situation) -> list[Json]:
    """The other slices whose job may still run, and is this slice's job: those that are not Finished, were replaced, or
    were finished because somebody changed the job (`OutOfSync`). Empty unless the job is elastic.
    """
    if not situation.facts.is_elastic:
        return []
    others = situation.snapshot.siblings
    return [other for other in others if workloads.finish_reason(other) in ("", SLICE_REPLACED, OUT_OF_SYNC)]


def may_have_pods(situation: Situation, job: Json) -> bool:
    """Whether a job copy in sight may have pods: it has not ended, and its status does not say that none is left."""
    adapter = situation.snapshot.adapter
    return adapter is None or kinds.may_have_pods(adapter, job)


def may_run(situation: Situation, worker: Worker, job: Json) -> bool:
    """Whether a job copy may have pods, or get some: its Kueue starts it once the Workload copy has quota."""
    if may_have_pods(situation, job):
        return True
    stopped = is_terminating(job) or (worker.facts.is_stopping and not worker.facts.waits_for_quota)
    return situation.adapter.outcome(job) is None and not stopped


def may_start_unseen(worker: Worker) -> bool:
    """Whether a worker's Kueue may start the job again while jobs cannot be seen there."""
    return not worker.in_sight and worker.facts.has_had_owner and worker.facts.waits_for_quota


def may_run_anywhere(situation: Situation) -> bool:
    """Whether a job of it may run on a worker, seen or unseen."""
    shown = ((worker, job) for worker in situation.workers if worker.in_sight for job in situation.jobs_on(worker))
    return any(may_be_ours(situation, *there) for there in shown) or bool(possible_runs(situation))


def may_run_of_gone(situation: Situation, worker: Worker) -> bool:
    """Whether a worker shows, or is assumed to have, a job of a Workload that is gone.

    A worker whose answers cannot be read is waited for as long as a lost one.
    """
    may_show = worker.in_sight and isinstance(worker.creation, states.Unanswered)
    if worker.jobs or worker.shared or may_show or isinstance(worker.in_flight, states.Creating):
        return True
    had_it = situation.snapshot.last_worker in (None, worker.name)
    waits = situation.snapshot.quiet_for < situation.settings.worker_lost_timeout
    return had_it and not worker.in_sight and waits and bool(assumed_for(situation, worker))


def may_run_beside(situation: Situation, worker: Worker, *, asked: bool) -> bool:
    """Whether a job may run beside the Workload copy, while jobs cannot be seen there: then the copy must stay, as
    nothing else shows the run.

    Of a kind whose jobs another controller moves, no job is ever seen: there it is enough that its Kueue was asked to
    stop it (`asked`).
    """
    if situation.traits.workload_only and worker.in_sight:
        if situation.snapshot.workload is None or situation.snapshot.quiet_for >= graces.STOP or not worker.facts.runs:
            return False
        had_it = worker.facts.has_had_owner or worker.name == situation.last_worker
        return had_it and (asked or worker.facts.can_be_asked)
    hidden = not worker.in_sight and (worker.facts.has_had_owner or not isinstance(worker.creation, states.NothingSent))
    hidden = hidden and (situation.snapshot.workload is None or not is_new(situation, worker))
    return hidden and (worker.facts.runs or may_start_unseen(worker) or _pods_end_in(situation, worker) > _ZERO)
