"""Whether an earlier attempt of the job may still run where it cannot be seen. See `leftovers` for what can.

This attempt's job is created on the recorded worker only, so at most one cluster has it. But an eviction erases
`clusterName`, and the manager's Kueue may reserve quota again before the earlier job has been seen to stop. Nobody else
may be recorded before that is clear: the job would run twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from multikueue.core.model.labels import LAST_WORKER_ANNOTATION, PLACEMENTS_ANNOTATION
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import annotations_of, is_terminating, uid
from multikueue.core.model.workloads import (
    cluster_name,
    evictions,
    is_admitted,
    is_elastic,
    is_evicted,
    is_finished,
    is_replaced,
    is_stopping,
    reserved_at,
)
from multikueue.core.workload.effects import MANAGER, Effect, PatchWorkload
from multikueue.core.workload.placements import new_placements
from multikueue.core.workload.situation import Situation
from multikueue.core.workload.snapshot import (
    Connecting,
    Creating,
    Lost,
    Syncing,
    Unanswered,
    Unreadable,
    Unserved,
    Worker,
)

FIRST_ANSWER: Final = timedelta(seconds=60)
"""How long a worker may take to answer, or to fail to, for the first time after a start: a request's deadline is half
as long."""
LATE_CREATION: Final = timedelta(seconds=10)
"""How long a creation that was not answered may take to show in a watch that works: a request can be held up on its
way, and arrive after its sender has given up."""

LEFTOVER_GRACE: Final = timedelta(seconds=60)
"""How long the deletion of an earlier attempt's job may take: twice the time Kubernetes gives pods to end."""


def until_stopped(situation: Situation, chosen: Worker) -> timedelta | None:
    """How long nobody may be recorded, because an earlier attempt may still run unseen; None: go on.

    Args:
        situation: the Workload, with quota and no worker.
        chosen: the worker about to be recorded. An earlier job there has the same name: the two exclude each other. It
            is waited for, too, but not for ever: then the worker is recorded, and that job is told of.
    """
    others = [worker for worker in situation.workers if worker.name != chosen.name]
    waits = hidden(situation, others)
    if any(_runs_for_other_slice(situation, worker) for worker in others):
        waits.append(LATE_CREATION)  # that slice has to take it away
    if situation.stale_jobs_on(chosen) and situation.snapshot.quiet_for < LEFTOVER_GRACE:
        waits.append(LEFTOVER_GRACE)
    return max(waits, default=None)


def hidden(situation: Situation, workers: Iterable[Worker]) -> list[timedelta]:
    """For how much longer a job of this Workload may run unseen on each of these workers where it may."""
    return [left for worker in workers if (left := may_run_for(situation, worker)) is not None]


def may_run_for(situation: Situation, worker: Worker) -> timedelta | None:
    """For how much longer a job of this Workload may run there without being seen; None: it does not."""
    if isinstance(worker.in_flight, Creating):
        return FIRST_ANSWER
    if worker.in_sight:
        return _positive(LATE_CREATION - worker.creation.ago) if isinstance(worker.creation, Unanswered) else None
    if worker.reachable and worker.workload is not None and _may_matter(situation, worker):
        # Only its jobs are hidden: its Kueue's word counts, though not for the job of an earlier slice.
        if not is_stopping(worker.workload):
            return situation.settings.worker_lost_timeout
        if not _earlier_slices(situation):
            return None
    return left_of_loss(situation, worker) if _may_have_one(situation, worker) else None


def left_of_loss(situation: Situation, worker: Worker) -> timedelta | None:
    """What is left of `worker_lost_timeout` for a worker out of sight; None: it is over.

    For one that answers, but with what cannot be read, it does not begin.
    """
    timeout = situation.settings.worker_lost_timeout
    match worker.reach, worker.kind:
        case ((Lost(None) | Unreadable()), _):
            return timeout
        case Lost(datetime() as since), _:
            return _positive(timeout - (situation.now - _seen_lost(situation, worker, since)))
        case (Connecting(), _) | (_, Syncing()):
            return FIRST_ANSWER  # that it was lost when we started says nothing about now
        case _, Unreadable():
            return timeout
        case _, Unserved(failing_for):
            return _positive(timeout - failing_for)
    return None


def _seen_lost(situation: Situation, worker: Worker, noted: datetime) -> datetime:
    """Since when the worker is lost. The recorded one has admitted this attempt, so it was seen after that began.

    What stands on its MultiKueueCluster may be an earlier loss: a process may end before it can write that it is over.
    """
    began = reserved_at(situation.workload) if situation.assigned_to == worker.name else None
    return noted if began is None else max(noted, min(began, situation.now))


def note_last_worker(situation: Situation) -> Iterator[Effect]:
    """Keep the last recorded worker on the Workload while it is out of sight, so that a restart does not forget it.

    The same write notes a placement that has ended.
    """
    noted = noted_worker(situation.workload)
    annotations: dict[str, str | None] = {}
    wanted = next((worker.name for worker in situation.workers if _is_in_doubt(situation, worker)), None)
    if noted != wanted:
        annotations[LAST_WORKER_ANNOTATION] = wanted
    if (ended := new_placements(situation)) is not None:
        annotations[PLACEMENTS_ANNOTATION] = ended
    if annotations:
        yield _annotated(situation, annotations)


def note_worker(situation: Situation, worker: Worker) -> Iterator[Effect]:
    """Keep the worker that has it on the Workload until it can be recorded: a restart does not forget it then."""
    if noted_worker(situation.workload) != worker.name:
        yield _annotated(situation, {LAST_WORKER_ANNOTATION: worker.name})


def _annotated(situation: Situation, annotations: Mapping[str, str | None]) -> Effect:
    metadata: Json = {"uid": uid(situation.workload), "annotations": dict(annotations)}
    return PatchWorkload(MANAGER, situation.snapshot.key, {"metadata": metadata})


def noted_worker(workload: Json) -> ClusterName | None:
    """The worker that `note_last_worker` has kept on the Workload."""
    noted = annotations_of(workload).get(LAST_WORKER_ANNOTATION)
    return ClusterName(noted) if noted else None


def _is_in_doubt(situation: Situation, worker: Worker) -> bool:
    recorded = situation.assigned_to is not None
    return not recorded and worker.name == last_worker(situation) and may_run_for(situation, worker) is not None


def _runs_for_other_slice(situation: Situation, worker: Worker) -> bool:
    """Whether an elastic job is seen to run there for another slice: this one did not get its place."""
    if not is_elastic(situation.workload):
        return False
    job = situation.shared_job_on(worker)
    return job is not None and situation.is_current(worker, job) and situation.adapter.outcome(job) is None


def _may_have_one(situation: Situation, worker: Worker) -> bool:
    """Whether a job of this Workload may be on a worker out of sight."""
    known = situation.jobs_on(worker) if _may_matter(situation, worker) else ()
    if isinstance(worker.creation, Unanswered) or not all(has_stopped(situation, worker, job) for job in known):
        return True
    slices = _earlier_slices(situation)
    if any(worker.name in (cluster_name(one), noted_worker(one)) for one in slices):
        return True
    if not worker.seen and any(map(_has_lost_its_record, slices)):
        return True
    last = last_worker(situation)
    if last is not None:
        return last == worker.name and not worker.seen
    return not worker.seen and (is_evicted(situation.workload) or evictions(situation.workload) > 0)


def _may_matter(situation: Situation, worker: Worker) -> bool:
    """Whether what shows there may be ours: it is in the config, or it has had the Workload."""
    return worker.configured or worker.name == last_worker(situation)


def _earlier_slices(situation: Situation) -> list[Json]:
    """The slices of an elastic job that this one replaces or joins: their job is its job, whatever was seen of it."""
    if not is_elastic(situation.workload):
        return []
    return [one for one in situation.snapshot.siblings if is_replaced(one) or not is_finished(one)]


def _has_lost_its_record(one: Json) -> bool:
    """Whether a slice was placed, and nobody knows where any more: it may be on any worker that was not read since.

    Somebody has erased it, or it was evicted while nobody was there who could have noted it.
    """
    placed = is_admitted(one) or is_evicted(one) or evictions(one) > 0
    return placed and cluster_name(one) is None and noted_worker(one) is None


def has_stopped(situation: Situation, worker: Worker, job: Json) -> bool:
    """Whether the job was seen to have ended or stopped, before the worker went out of sight if it did."""
    if situation.adapter.outcome(job) is not None:
        return True
    showed_it = not situation.traits.keeps_status and situation.adapter.release_patch(job) is None
    goes = is_terminating(job) or worker.workload is None or is_stopping(worker.workload)
    return showed_it and goes


def last_worker(situation: Situation) -> ClusterName | None:
    """The worker that is recorded, or was recorded last."""
    return situation.assigned_to or situation.snapshot.last_worker or noted_worker(situation.workload)


def _positive(left: timedelta) -> timedelta | None:
    return left if left > timedelta(0) else None
