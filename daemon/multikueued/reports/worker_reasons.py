"""Why a job is not offered to each worker, where the scored dispatcher chooses: by what the manager shows.

The dispatcher's own functions look at what the manager and the daemon's findings show now. They do not show what other
jobs have claimed, nor what a cohort could lend: then there is no reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.config.quota import cohort_of
from multikueue.core.dispatchers.dispatcher import Candidate, Candidates, Known
from multikueue.core.dispatchers.reasons import Reason
from multikueue.core.dispatchers.scored import kueue_objects
from multikueue.core.dispatchers.scored.facts import JobFacts, QueueFacts, Room
from multikueue.core.dispatchers.scored.filters import REFUSED_FOR
from multikueue.core.dispatchers.scored.job_annotations import job_named, read
from multikueue.core.dispatchers.scored.profile import Profile
from multikueue.core.dispatchers.scored.state import State
from multikueue.core.dispatchers.scored.view import view
from multikueue.core.model import workloads
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, labels_of
from multikueue.errors import Cause
from multikueued.reports.objects import Chain, ManagerObjects
from multikueued.reports.worker_answers import AnswerState, Source, WorkerAnswer

_SEEN_THERE: Final = (Cause.NO_LOCAL_QUEUE, Cause.QUEUE_INACTIVE, Cause.NEVER_FITS, Cause.NO_ROOM)


def with_reasons(
    answers: tuple[WorkerAnswer, ...], chain: Chain, job: Json | None, now: datetime
) -> tuple[WorkerAnswer, ...]:
    """The answers with why the dispatcher does not offer the job there; as they are, if another dispatcher chooses.

    Args:
        answers: of all workers of the config.
        chain: of the Workload, which has quota and no worker.
        job: the one behind it, as far as it could be read.
        now: the wall clock.
    """
    if (state := State.parse(chain.says.head)) is None:
        return answers
    reasons, offered = _reasons(answers, chain, job, state, now), workloads.nominated(chain.workload)
    return tuple(
        answer if answer.worker in offered else _with(answer, reasons.get(ClusterName(answer.worker)), chain.objects)
        for answer in answers
    )


def _with(answer: WorkerAnswer, reason: Reason | None, objects: ManagerObjects) -> WorkerAnswer:
    if reason is None:
        return answer
    answer = attrs.evolve(answer, reason=reason.why.value)
    if answer.told:
        return answer
    seen = objects.queues_seen(answer.worker)
    if reason.why not in _SEEN_THERE or seen is None:
        return attrs.evolve(answer, told=str(reason))
    _, at = seen
    return attrs.evolve(answer, told=f"{reason} (as the daemon saw it at {timestamp(at)})", source=Source.FINDINGS)


def _reasons(
    answers: Iterable[WorkerAnswer], chain: Chain, job: Json | None, state: State, now: datetime
) -> Mapping[ClusterName, Reason]:
    refused = {refusal.worker for refusal in state.refused if now - refusal.at < REFUSED_FOR}
    candidates = Candidates(
        tuple(_candidate(answer, chain, refused) for answer in answers),
        workloads.nominated(chain.workload),
        facts=_job(chain, job),
    )
    asked = {ClusterName(name): Reason(Cause.ASKED_BEFORE) for name in state.asked}
    return {**asked, **view(chain.workload, candidates, Profile(), state, now).reasons}


def _candidate(answer: WorkerAnswer, chain: Chain, refused: set[str]) -> Candidate:
    name, cluster = answer.worker, chain.objects.clusters_by_name.get(answer.worker, {})
    queue = _queue(name, chain)
    missing = queue if isinstance(queue, Reason) else None
    why = _obstacle(answer) or (Cause.REFUSED if name in refused else None)
    return Candidate(
        ClusterName(name),
        labels_of(cluster),
        annotations_of(cluster),
        available=answer.is_connected,
        obstacle=Reason(why) if why is not None else missing,
        facts=Room(queue) if isinstance(queue, QueueFacts) else None,
    )


def _obstacle(answer: WorkerAnswer) -> Cause | None:
    match answer.state:
        case AnswerState.CORDONED | AnswerState.UNUSABLE:
            return Cause(answer.cause or Cause.NOT_SERVED)
        case AnswerState.REFUSED:
            return Cause.REFUSED
    return Cause.NAMESPACE_UNNAMED if answer.cause == Cause.NAMESPACE_UNNAMED else None


def _queue(name: str, chain: Chain) -> QueueFacts | Reason | None:
    """The ClusterQueue that a Workload goes to on a worker, as the daemon saw it; None: it has not said enough."""
    if (seen := chain.objects.queues_seen(name)) is None:
        return None
    queues, at = seen
    leads = queues.local.get(chain.objects.names_on(name).local_queue(chain.queue))
    if leads is None:
        return Reason(Cause.NO_LOCAL_QUEUE)
    queue = queues.cluster.get(leads)
    if queue is None or dig(queue, "status", "conditions") is None:  # of a daemon before this one
        return None
    known = Known.FORBIDDEN if cohort_of(queue) else Known.YES
    return kueue_objects.queue_facts(kueue_objects.tree([queue], None), queue, at, known=known)


def _job(chain: Chain, job: Json | None) -> JobFacts:
    annotations = annotations_of(job or {})
    together = read({**annotations, **annotations_of(chain.workload)}).together
    company = _company(together, chain.queue.namespace, chain.objects) if together else None
    return JobFacts(kueue_objects.request(chain.workload), annotations, company=company)


def _company(together: str, namespace: str, objects: ManagerObjects) -> ClusterName | None:
    """Where a job runs that is named as `job/train` or `rayjob.ray.io/train`."""
    for other in objects.workloads:
        owner, worker = workloads.owner(other), workloads.cluster_name(other)
        if owner is None or worker is None or ObjectKey.of(other).namespace != namespace:
            continue
        if owner.name == job_named(together, owner.gvk):
            return worker
    return None
