"""What happens next to a job, and when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.giving_up import detached_at
from multikueue.core.model.objects import annotations_of, dig
from multikueue.core.workload.seen.snapshot import PlanSettings
from multikueued.reports.cluster_answers import cluster_answer
from multikueued.reports.jobs import JobReport, JobState
from multikueued.reports.objects import Chain
from multikueued.reports.remedies.remedy import command_for
from multikueued.reports.worker_answers import AnswerState, WorkerAnswer, lacks_quota_there

_LOST_AFTER: Final = PlanSettings().worker_lost_timeout
_UNLESS_SET: Final = "(15m, unless the settings say otherwise)"


@attrs.frozen
class NextStep:
    """One thing that will happen."""

    text: str
    at: datetime | None = None
    """When; None: when its condition holds."""


def next_steps(
    chain: Chain, job: JobReport, answers: Sequence[WorkerAnswer], *, stuck: bool = False
) -> tuple[NextStep, ...]:
    """The steps in the order in which they are to be expected; of one that is stuck only what needs nobody."""
    return (*_of_job(chain, job, answers, stuck), *_of_workers(job, answers))


def _of_job(chain: Chain, job: JobReport, answers: Sequence[WorkerAnswer], stuck: bool) -> Iterator[NextStep]:
    match job.state:
        case JobState.QUEUED | JobState.RETRYING:
            again = parse_timestamp(dig(chain.workload, "status", "requeueState", "requeueAt"))
            if again is not None:
                yield NextStep("Kueue puts it into the queue again", again)
            if not stuck or job.state is JobState.RETRYING:
                yield NextStep("once this cluster has room, Kueue gives it quota, and then workers are asked")
        case JobState.WAITING:
            yield from _of_waiting(chain, stuck)
        case JobState.OFFERED if not stuck:
            yield NextStep(
                f"the first of {', '.join(job.offered_to)} that admits it gets it; the other copies are removed"
            )
        case JobState.STARTING:
            first = (
                "its worker gives it quota" if lacks_quota_there(job, answers) else "its job is created on the worker"
            )
            yield NextStep(f"{first}, and then the check becomes Ready")
        case JobState.RUNNING:
            yield NextStep("its status is copied here until it ends")
        case JobState.LOST:
            yield _move(chain, job)
        case JobState.REJECTED:
            yield NextStep("Kueue deactivates it")
        case JobState.INACTIVE:
            yield NextStep("nothing, until spec.active of the Workload is true again")
        case JobState.STOPPING:
            yield NextStep("its copies are stopped and removed; Kueue has the quota back after that")


def _of_waiting(chain: Chain, stuck: bool) -> Iterator[NextStep]:
    if chain.earlier_runs:
        due = max((run.due for run in chain.earlier_runs if run.due is not None), default=None)
        if due is not None and not stuck:
            yield NextStep("by then its earlier run should have ended", due)
        yield NextStep("once its earlier run is gone from its worker, it is offered to workers")
    elif not stuck:
        yield NextStep("it is offered to workers as soon as one of them can take it")


def _move(chain: Chain, job: JobReport) -> NextStep:
    clusters, after = chain.objects.clusters_by_name, f"workerLostTimeout {_UNLESS_SET}"
    cluster = clusters.get(job.worker, {})
    said = cluster_answer(cluster)
    if detached_at(annotations_of(cluster)) is not None and said.moves_at is None:
        return NextStep(f"the job stays there until that cluster is gone, and goes to another worker {after} later")
    words = chain.says.by_worker((job.worker,)).get(job.worker)
    if words is not None and job.worker not in clusters:
        return NextStep(f"{job.worker} {words}")
    if words is not None:
        return NextStep(f"the job goes to another worker, unless this one is back before: {words}", said.moves_at)
    since = said.since + _LOST_AFTER if said.since is not None else None
    return NextStep(f"the job goes to another worker after {after}, unless this one is back before", since)


def _of_workers(job: JobReport, answers: Sequence[WorkerAnswer]) -> Iterator[NextStep]:
    if job.state in (JobState.RUNNING, JobState.FINISHED, JobState.FAILED, JobState.REJECTED):
        return
    at_once = f"; at once with {command_for(job.job, 'retry', job.namespace)}"
    for answer in answers:
        if answer.next_attempt is not None:
            how = at_once if answer.state is AnswerState.REFUSED else ""
            yield NextStep(f"{answer.worker} is asked again{how}", answer.next_attempt)
    refusing = [answer.worker for answer in answers if answer.state is AnswerState.REFUSED and not answer.next_attempt]
    if refusing:
        again = timedelta(minutes=5)
        first = f"{', '.join(refusing)}: asked again by itself, {again.seconds // 60} minutes after a refusal at first"
        yield NextStep(f"{first}{at_once}")
