"""Why a job is where it is: the chain from the job to the workers, what happens next, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.model import workloads
from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.core.workload.seen.snapshot import PlanSettings
from multikueued.reports.chain import ChainLink, links_of, managed_by
from multikueued.reports.cluster_answers import WorkerState
from multikueued.reports.job_findings import DOES_NOT_END, EARLIER_RUN, POD_MISSING, findings_of
from multikueued.reports.jobs import ENDED_STATES, JobReport, JobState, ReportedPlacement, placements
from multikueued.reports.objects import Chain
from multikueued.reports.remedies.audience import Audience, read_by
from multikueued.reports.remedies.job_trouble import own_trouble
from multikueued.reports.remedies.remedy import REMEDIES, Finding, command_for
from multikueued.reports.seen import Seen
from multikueued.reports.worker_answers import AnswerState, WorkerAnswer, lacks_quota_there

_OF_THE_RUN: Final = frozenset(row.id for row in REMEDIES.values() if row.run or row.reasons)
"""The findings of a job that is on its worker and gets nowhere there."""


_LOST_AFTER: Final = PlanSettings().worker_lost_timeout
_UNLESS_SET: Final = "(15m, unless the settings say otherwise)"


@attrs.frozen
class NextStep:
    """One thing that will happen."""

    text: str
    at: datetime | None = None
    """When; None: when its condition holds."""


@attrs.frozen(kw_only=True)
class Explanation:
    """What `multikueue explain` prints."""

    job: JobReport
    summary: str
    """One sentence."""
    chain: tuple[ChainLink, ...]
    """Job, LocalQueue, ClusterQueue, Workload, AdmissionCheck, MultiKueueConfig: what each says."""
    workers: tuple[WorkerAnswer, ...]
    """What each worker of the config says."""
    next: tuple[NextStep, ...]
    """What happens next, and when."""
    audience: Audience = Audience.OPERATOR
    """Whom the remedies are for."""
    findings: tuple[Finding, ...]
    """What is wrong and what to do, what needs somebody first."""
    placements: tuple[ReportedPlacement, ...]
    """The last workers that had it."""
    not_checked: tuple[str, ...]
    """What could not be read, and so says nothing."""
    others: tuple[str, ...]
    """The other Workloads of the same job, as `workload/NAME`: each is explained by itself."""


def explain(seen: Seen) -> Explanation:
    """Explain one Workload."""
    chain, line, answers, findings = seen.chain, seen.line, seen.answers, findings_of(seen)
    return Explanation(
        job=line,
        audience=seen.audience,
        summary=_summary(line, answers, findings),
        chain=tuple(links_of(chain, seen.job, line, [answer.worker for answer in answers])),
        workers=answers,
        next=tuple(next_steps(chain, line, answers, stuck=any(finding.blocking for finding in findings))),
        findings=findings,
        placements=placements(seen.workload, starting=line.state is JobState.STARTING),
        not_checked=seen.not_checked,
        others=seen.others,
    )


def with_job(explanation: Explanation, job: Json, now: datetime) -> Explanation:
    """An explanation that was made without the job, with what the job says itself."""
    first, *others = explanation.chain
    explained = attrs.evolve(explanation, chain=(attrs.evolve(first, told=managed_by(job)), *others))
    own = own_trouble(job, explained.job, None, now)
    return with_findings(explained, *(() if own is None else (own,)))


def with_findings(explanation: Explanation, *more: Finding, without: str = "") -> Explanation:
    """An explanation with more findings, and without those of an id."""
    kept = (finding for finding in explanation.findings if finding.id != without)
    shown = read_by(explanation.audience, (*more, *kept))
    return attrs.evolve(explanation, findings=shown, summary=_summary(explanation.job, explanation.workers, shown))


def _summary(job: JobReport, answers: Sequence[WorkerAnswer], findings: Sequence[Finding]) -> str:
    first = next((finding for finding in findings if finding.blocking), None)
    match job.state:
        case JobState.RUNNING:
            return _runs(job, findings)
        case JobState.STARTING if not any(finding.id in (EARLIER_RUN, DOES_NOT_END) for finding in findings):
            lacks_quota = lacks_quota_there(job, answers)
            admitted = "has admitted it, and its job is being created there"
            how = "has its job, and gives it no quota as it is now" if lacks_quota else admitted
            return f'Worker cluster "{job.worker}" {how}.'
        case JobState.LOST:
            gone = any(answer.worker == job.worker and answer.state is AnswerState.MISSING for answer in answers)
            lost = "whose MultiKueueCluster is gone" if gone else "which cannot be reached"
            return f'It is assigned to worker cluster "{job.worker}", {lost}.'
        case JobState.FINISHED | JobState.FAILED:
            if any(finding.id == "job-deleted" for finding in findings):
                return "Its job was deleted."
            where = f' on worker cluster "{job.worker}"' if job.worker else ""
            return f"It has {'failed' if job.state is JobState.FAILED else 'finished'}{where}."
        case JobState.STOPPING:
            return "It is being stopped."
        case JobState.RETRYING:
            return "It was sent back, and is queued again."
    if first is not None:
        return f"It does not run, and somebody has to act: {first.sentence.rstrip('.')}."
    return _waits(job, findings)


def _runs(job: JobReport, findings: Sequence[Finding]) -> str:
    stuck = next((finding for finding in findings if finding.blocking and finding.id in _OF_THE_RUN), None)
    if stuck is not None:
        return f'Worker cluster "{job.worker}" has it, and somebody has to act: {stuck.why}.'
    lacking = next((finding for finding in findings if finding.id == POD_MISSING.id), None)
    if lacking is not None:
        return f'Worker cluster "{job.worker}" has it: {lacking.why}.'
    return f'It runs on worker cluster "{job.worker}".'


def _waits(job: JobReport, findings: Sequence[Finding]) -> str:
    earlier = next((finding for finding in findings if finding.id == EARLIER_RUN), None)
    if earlier is not None:
        return f'It waits for an earlier run of it to end on worker cluster "{earlier.where}".'
    match job.state:
        case JobState.QUEUED:
            return "It waits for quota here."
        case JobState.OFFERED:
            return f"It is offered to {', '.join(job.offered_to)}: the first to admit it gets it."
    return "It waits."


def next_steps(
    chain: Chain, job: JobReport, answers: Sequence[WorkerAnswer], *, stuck: bool = False
) -> Iterator[NextStep]:
    """The steps in the order in which they are to be expected; of one that is stuck only what needs nobody."""
    match job.state:
        case JobState.QUEUED | JobState.RETRYING:
            again = parse_timestamp(dig(chain.workload, "status", "requeueState", "requeueAt"))
            if again is not None:
                yield NextStep("Kueue puts it into the queue again", again)
            if not stuck or job.state is JobState.RETRYING:
                yield NextStep("once this cluster has room, Kueue gives it quota, and then workers are asked")
        case JobState.WAITING | JobState.STARTING if chain.earlier_runs or not job.worker:
            yield from _of_waiting(chain, job, stuck)
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
        case JobState.REJECTED if workloads.is_active(chain.workload):
            yield NextStep("Kueue deactivates it")
        case JobState.REJECTED | JobState.INACTIVE:
            yield NextStep("nothing, until spec.active of the Workload is true again")
        case JobState.STOPPING:
            yield NextStep("its copies are stopped and removed; Kueue has the quota back after that")
    yield from _asked_again(job, answers)


def _of_waiting(chain: Chain, job: JobReport, stuck: bool) -> Iterator[NextStep]:
    if chain.earlier_runs:
        due = max((run.due for run in chain.earlier_runs if run.due is not None), default=None)
        if due is not None and not stuck:
            yield NextStep("by then its earlier run should have ended", due)
        then = "its job is created there" if job.worker else "it is offered to workers"
        yield NextStep(f"once its earlier run is gone from its worker, {then}")
    elif not stuck:
        yield NextStep("it is offered to workers as soon as one of them can take it")


def _move(chain: Chain, job: JobReport) -> NextStep:
    said, after = chain.objects.said_of(job.worker), f"workerLostTimeout {_UNLESS_SET}"
    if said.is_lost_by_detaching:
        return NextStep(f"the job stays there until that cluster is gone, and goes to another worker {after} later")
    words = chain.says.by_worker((job.worker,)).get(job.worker)
    if words is not None and said.state is WorkerState.MISSING:
        return NextStep(f"{job.worker} {words}")
    if words is not None:
        return NextStep(f"the job goes to another worker, unless this one is back before: {words}", said.moves_at)
    due = said.since + _LOST_AFTER if said.since is not None else None
    return NextStep(f"the job goes to another worker after {after}, unless this one is back before", due)


def _asked_again(job: JobReport, answers: Sequence[WorkerAnswer]) -> Iterator[NextStep]:
    """When workers are asked again that are away, or have refused it."""
    if job.state in (JobState.RUNNING, *ENDED_STATES, JobState.REJECTED):
        return
    at_once = f"; at once with {command_for(job.job, 'retry', job.namespace)}"
    for answer in answers:
        if answer.next_attempt is not None:
            how = at_once if answer.state is AnswerState.REFUSED else ""
            yield NextStep(f"{answer.worker} is asked again{how}", answer.next_attempt)
    refusing = [answer.worker for answer in answers if answer.state is AnswerState.REFUSED and not answer.next_attempt]
    if refusing:
        first = f"{', '.join(refusing)}: asked again by itself, 5 minutes after a refusal at first"
        yield NextStep(f"{first}{at_once}")
