"""Why a job is where it is: the chain from the job to the workers, what happens next, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.model.conditions import message
from multikueue.core.model.labels import CONTROLLER_NAME, ToldFinding
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import reserved_at, was_rejected
from multikueue.errors import Cause
from multikueued.reports import clocks
from multikueued.reports.chain import ChainLink, check_findings, links_of, managed_by, queue_findings
from multikueued.reports.events import EventReport
from multikueued.reports.held_quota import held_quota
from multikueued.reports.jobs import (
    RUNNING_STATES,
    WAITING_STATES,
    JobReport,
    JobState,
    ReportedPlacement,
    job_report,
    placements,
)
from multikueued.reports.objects import Chain, ManagerObjects
from multikueued.reports.places import Waiting, starving
from multikueued.reports.remedies.audience import Audience, read_by
from multikueued.reports.remedies.check_remedies import (
    MANAGER_RULES,
    POD_MISSING,
    deleted_job_findings,
    group_findings,
    queue_changes,
    time_is_over,
    waiting_findings,
    why_rejected,
)
from multikueued.reports.remedies.earlier_runs import EARLIER_RUN, earlier_run_findings
from multikueued.reports.remedies.job_trouble import NOT_READY, TROUBLE, own_trouble
from multikueued.reports.remedies.next_steps import NextStep, next_steps
from multikueued.reports.remedies.pod_remedies import BY_REASON, NEED_MISSING, NONE_MADE
from multikueued.reports.remedies.remedy import Finding, finding
from multikueued.reports.remedies.told_findings import told_findings
from multikueued.reports.remedies.trouble import (
    UNKNOWN,
    Trouble,
    findings_of,
    found_by,
    source_names,
    taken_away,
    trouble_of,
)
from multikueued.reports.status import daemon_findings, daemon_report
from multikueued.reports.worker_answers import AnswerState, WorkerAnswer, ask_workers, lacks_quota_there
from multikueued.reports.worker_reasons import narrowed_out, with_reasons

_OF_THE_RUN: Final = frozenset(
    remedy.id
    for remedy in (
        *(sign.remedy for sign in TROUBLE),
        NOT_READY,
        *BY_REASON.values(),
        NEED_MISSING,
        NONE_MADE,
        POD_MISSING,
    )
)
"""The findings of a job that is on its worker and gets nowhere there."""
OF_WORKERS: Final = (*RUNNING_STATES, JobState.WAITING, JobState.OFFERED)
"""The states in which what is wrong on workers may be what holds a job up there."""
_WITHOUT_TROUBLE: Final = (*RUNNING_STATES, JobState.FINISHED, JobState.FAILED, JobState.STOPPING)


@attrs.frozen
class Seen:
    """What an explanation is made of."""

    workload: Json
    job: Json | None
    """The job behind it, as far as it could be read."""
    objects: ManagerObjects
    events: tuple[EventReport, ...]
    """Of both, in the order of time."""
    now: datetime
    daemon_namespace: str
    not_checked: tuple[str, ...] = ()
    """What could not be read."""
    others: tuple[str, ...] = ()
    """The other Workloads of the job that have not ended, as `workload/NAME`."""
    waiting: Waiting | None = None
    """How it waits, where that is known."""
    audience: Audience = Audience.OPERATOR
    """Whom the remedies are for."""
    others_named: bool | None = True
    """Whether other jobs may be named, since `objects` were read with the rights of who is told; None: nobody asks for
    what they hold up."""

    fleet: tuple[Finding, ...] = ()
    """What is wrong with the fleet: what concerns the job on the workers that have it, or may get it, is told."""
    chain: Chain = attrs.field(init=False)
    """What the Workload leads to."""

    @chain.default
    def _looked_up(self) -> Chain:
        return self.objects.chain(self.workload)

    def findings_of(self, other: Json) -> tuple[Finding, ...]:
        """What is wrong with another Workload."""
        return explain(attrs.evolve(self, workload=other, job=None, events=())).findings


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
    chain, job = seen.chain, job_report(seen.chain)
    if seen.waiting is not None:
        job = seen.waiting.on(job, reserved_at(seen.workload))
    answers = ask_workers(chain, job, seen.events, seen.now)
    if job.state in (JobState.WAITING, JobState.OFFERED):
        answers = with_reasons(answers, chain, seen.job, seen.now)
    found = sorted(_findings(seen, job, answers), key=lambda finding: not finding.blocking)
    findings = read_by(seen.audience, found)
    return Explanation(
        job=job,
        audience=seen.audience,
        summary=_summary(job, answers, findings),
        chain=tuple(links_of(chain, seen.job, job, [answer.worker for answer in answers])),
        workers=answers,
        next=next_steps(chain, job, answers, stuck=any(finding.blocking for finding in findings)),
        findings=findings,
        placements=placements(seen.workload, starting=job.state is JobState.STARTING),
        not_checked=seen.not_checked,
        others=seen.others,
    )


def _findings(seen: Seen, job: JobReport, answers: Sequence[WorkerAnswer]) -> Iterator[Finding]:
    """What is wrong, from the job outwards: itself, its queues and its check, its workers, and clocks."""
    of_events = tuple(told_findings(seen.events, seen.workload, seen.job, job.job)) if seen.events else ()
    yield from of_events
    yield from deleted_job_findings(seen.workload, job)
    refused = any(event_finding.id == ToldFinding.STATUS_REFUSED for event_finding in of_events)
    if seen.job is not None and not refused:  # what was refused would say more
        own = own_trouble(seen.job, job, seen.workload, seen.now)
        yield from () if own is None else (own,)
    if job.state in (JobState.FINISHED, JobState.FAILED):
        return
    if job.state in (*WAITING_STATES, *RUNNING_STATES):
        yield from group_findings(seen.workload, job, seen.now)
        yield from queue_changes(job, seen.job or {}, seen.workload)
    yield from daemon_findings(daemon_report(seen.objects.lease, seen.now), seen.daemon_namespace)
    if job.state not in RUNNING_STATES:
        delegated = str(dig(seen.job or {}, "spec", "managedBy") or "").startswith(CONTROLLER_NAME)
        yield from queue_findings(seen.chain, delegated=delegated)
        yield from _why_not_placed(seen, job)
    if job.state in WAITING_STATES:
        yield from earlier_run_findings(seen.chain, job, seen.now)
    if job.state is JobState.LOCAL:
        return
    if job.worker and (removal := taken_away(job.worker, seen.objects)) is not None:
        yield removal
    going = job.state in _WITHOUT_TROUBLE
    if seen.chain.checks:
        yield from (check_finding.mild(going) for check_finding in check_findings(seen.objects, *seen.chain.checks))
    elif job.state in RUNNING_STATES:  # its check was taken away under it
        yield from (queue_finding.mild() for queue_finding in queue_findings(seen.chain))
    yield from narrowed_out(job, answers)
    if job.state is JobState.WAITING:
        yield from starving(seen.objects, seen.now, seen.workload)
    yield from _about_workers(seen, job, answers)
    if job.state in OF_WORKERS:
        workers = [job.worker] if job.worker else [answer.worker for answer in answers]
        yield from (each.mild() for each in seen.fleet if any(_is_about(each, seen, worker) for worker in workers))
    yield from clocks.published(seen.objects, dict.fromkeys((job.worker, *job.offered_to)))
    yield from clocks.clock_findings(seen.workload, seen.job, job, seen.now)


def _is_about(fleet_finding: Finding, seen: Seen, worker: str) -> bool:
    """Whether something that is wrong on a worker is the job's queue there, or its namespace."""
    here = seen.chain.queue
    there = seen.objects.names_on(worker).local_queue(here)
    queues = seen.objects.queues_seen(worker)
    target = queues[0].local.get(there, "") if queues is not None else ""
    own = f"Namespace {here.namespace}", f"LocalQueue {here}", f"LocalQueue {there.name}", f"ClusterQueue {target}"
    return worker in fleet_finding.workers and fleet_finding.object in own


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


def _why_not_placed(seen: Seen, job: JobReport) -> Iterator[Finding]:
    """Why no worker has it, by what the manager's Kueue and our check say."""
    where = f"Workload {job.workload}"
    if job.state is JobState.QUEUED:
        told = message(seen.workload, "QuotaReserved")
        if (quota_finding := found_by(MANAGER_RULES, where, told, job.words)) is not None:
            yield quota_finding
            if not quota_finding.blocking and seen.others_named is not None:
                yield from held_quota(seen.chain, seen.findings_of, named=seen.others_named)
        return
    if job.state not in (JobState.INACTIVE, JobState.REJECTED):
        # Behind the head stand the workers' words.
        yield from waiting_findings(seen.chain, where, seen.chain.says.head)
        return
    over = list(time_is_over(seen.workload, where, job.reason, job.words))
    yield from over
    if job.state is JobState.REJECTED or was_rejected(seen.workload):
        yield why_rejected(seen.workload, seen.job, where, job.reason, job.words)
    elif not over:
        yield finding("inactive", where, job.reason, **job.words)


def _about_workers(seen: Seen, job: JobReport, answers: Sequence[WorkerAnswer]) -> Iterator[Finding]:
    """What keeps workers from taking it: nobody has to act as long as one of them may."""
    by_worker: dict[str, Trouble] = {}
    for answer in answers:
        if not answer.is_trouble:
            continue
        worker = answer.worker
        there = seen.objects.names_on(worker).namespace(job.namespace) or job.namespace
        source = source_names(seen.objects.clusters_by_name.get(worker))
        words = {**job.words, "secrets": seen.daemon_namespace, **source, "namespace_there": there, **answer.about}
        trouble = trouble_of(worker, answer.told, words, connected=answer.is_connected, cause=answer.cause)
        if trouble.remedy.id != UNKNOWN or not answer.is_word:
            by_worker[worker] = trouble
    may_take = any(
        answer.worker not in by_worker or not by_worker[answer.worker].remedy.blocking
        for answer in answers
        if answer.state is not AnswerState.MISSING and answer.cause != Cause.SECOND_NAME
    )
    going = job.state in (*_WITHOUT_TROUBLE, JobState.REJECTED, JobState.INACTIVE)
    is_stuck = job.state is JobState.LOST or any(
        answer.worker == job.worker and answer.state is AnswerState.REFUSED for answer in answers
    )
    for found in findings_of(by_worker.values()):
        own = is_stuck and job.worker in found.workers
        yield found.mild(not own and (may_take or going))


def _summary(job: JobReport, answers: Sequence[WorkerAnswer], findings: Sequence[Finding]) -> str:
    first = next((finding for finding in findings if finding.blocking), None)
    match job.state:
        case JobState.RUNNING:
            return _runs(job, findings)
        case JobState.STARTING:
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
