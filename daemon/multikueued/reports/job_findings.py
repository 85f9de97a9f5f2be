"""What is wrong with a job, from itself outwards: by what its Workload, its job, its config and its workers are.

No message of ours is read. What the manager's Kueue says of quota stands in its message and nowhere else, so that one
is matched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from multikueue.adapters.registry import AVAILABLE, setting_for
from multikueue.core.model import workloads
from multikueue.core.model.conditions import changed_at, condition, message, parse_timestamp, timestamp
from multikueue.core.model.earlier_run_facts import WAITS, EarlierRun
from multikueue.core.model.grace import DEFAULT_GRACE, MARGIN
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER
from multikueue.core.model.labels import (
    CONTROLLER_NAME,
    JOB_UID_LABEL,
    QUEUE_LABEL,
    RETRIABLE_ANNOTATION,
    ToldFinding,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, labels_of, namespace_of
from multikueue.core.model.workloads import CheckState, Rejection, reserved_at
from multikueue.errors import Cause
from multikueued.reports.chain import check_findings, queue_findings
from multikueued.reports.clocks import clock_findings
from multikueued.reports.daemon_lease import daemon_findings
from multikueued.reports.ending_copies import MOST_NAMED, LatePod, held_by
from multikueued.reports.jobs import ENDED_STATES, RUNNING_STATES, WAITING_STATES, JobState, state_of
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.places import starving
from multikueued.reports.remedies.audience import read_by
from multikueued.reports.remedies.job_trouble import own_trouble
from multikueued.reports.remedies.remedy import REMEDIES, RULES, Finding, finding
from multikueued.reports.remedies.told_findings import told_findings
from multikueued.reports.remedies.trouble import (
    UNKNOWN,
    Trouble,
    findings_of_workers,
    found_by,
    taken_away,
    trouble_of,
)
from multikueued.reports.seen import Seen
from multikueued.reports.typenames import title, type_name
from multikueued.reports.worker_answers import AnswerState

OF_WORKERS: Final = (*RUNNING_STATES, JobState.WAITING, JobState.OFFERED)
"""The states in which what is wrong on workers may be what holds a job up there."""
_WITHOUT_TROUBLE: Final = (*RUNNING_STATES, *ENDED_STATES, JobState.STOPPING)


def findings_of(seen: Seen) -> tuple[Finding, ...]:
    """What is wrong and what to do, for who reads it: what needs somebody first."""
    return read_by(seen.audience, sorted(_findings(seen), key=lambda problem: not problem.blocking))


def _findings(seen: Seen) -> Iterator[Finding]:
    """From the job outwards: itself, its queues and its check, its workers, and clocks."""
    line, state = seen.line, seen.line.state
    of_events = tuple(told_findings(seen.events, seen.workload, seen.job, line.job)) if seen.events else ()
    yield from of_events
    yield from _deleted(seen)
    refused = any(told.id == ToldFinding.STATUS_REFUSED for told in of_events)
    if seen.job is not None and not refused:  # what was refused would say more
        own = own_trouble(seen.job, line, seen.workload, seen.now)
        yield from () if own is None else (own,)
    if state in ENDED_STATES or seen.chain.is_copy:
        return
    if state in (*WAITING_STATES, *RUNNING_STATES):
        yield from _lacks_pod(seen)
        yield from _has_other_queue(seen)
    yield from daemon_findings(seen.objects.lease, seen.now, seen.objects.daemon_namespace)
    if state not in RUNNING_STATES:
        delegated = str(dig(seen.job or {}, "spec", "managedBy") or "").startswith(CONTROLLER_NAME)
        yield from queue_findings(seen.chain, delegated=delegated)
        yield from _not_placed(seen)
    if state in (*WAITING_STATES, JobState.STARTING):
        yield from _earlier_runs(seen)
    if state is JobState.LOCAL:
        return
    if line.worker and (removal := taken_away(line.worker, seen.objects)) is not None:
        yield removal
    going = state in _WITHOUT_TROUBLE
    if seen.chain.checks:
        yield from (problem.mild(going) for problem in check_findings(seen.objects, *seen.chain.checks))
    elif state in RUNNING_STATES:  # its check was taken away under it
        yield from (problem.mild() for problem in queue_findings(seen.chain))
    yield from _narrowed_out(seen)
    if state is JobState.WAITING:
        yield from starving(seen.objects, seen.now, seen.workload)
    yield from _of_answers(seen)
    if state in OF_WORKERS:
        having = [line.worker] if line.worker else [answer.worker for answer in seen.answers]
        yield from (each.mild() for each in seen.fleet if any(_is_about(each, seen, worker) for worker in having))
    yield from clock_findings(seen)


def _deleted(seen: Seen) -> Iterator[Finding]:
    """That its job was deleted by a client that leaves behind what belongs to it: then nothing else names it."""
    workload, where = seen.workload, f"Workload {seen.line.workload}"
    if workloads.finish_reason(workload) == workloads.OWNER_NOT_FOUND:
        yield finding("job-deleted@finished", where, **seen.line.words)
    elif workloads.owner(workload) is None and JOB_UID_LABEL in labels_of(workload):
        yield finding("job-deleted", where, **seen.line.words)


POD_MISSING: Final = REMEDIES["pod-missing"]
_REPLACED_AFTER: Final = timedelta(minutes=1)
"""How long who made a group of pods has to replace one of them, before somebody has to act."""


def _lacks_pod(seen: Seen) -> Iterator[Finding]:
    """That its Kueue waits for a new pod of a group, unless the group says that its pods are not replaced."""
    waits = condition(seen.workload, "WaitingForReplacementPods") or {}
    pods = (annotations_of(pod_set.get("template") or {}) for pod_set in dig(seen.workload, "spec", "podSets") or ())
    if waits.get("status") != "True" or any(noted.get(RETRIABLE_ANNOTATION) == "false" for noted in pods):
        return
    where, told = f"Workload {seen.line.workload}", str(waits.get("message") or "")
    since = parse_timestamp(waits.get("lastTransitionTime"))
    missing = POD_MISSING.about(where, told, seen.line.words)
    yield missing.mild(since is not None and seen.now - since < _REPLACED_AFTER)


def _has_other_queue(seen: Seen) -> Iterator[Finding]:
    """That a job was given another queue while it has quota: Kueue tries that in vain until the quota is given back."""
    wanted = labels_of(seen.job or {}).get(QUEUE_LABEL, "")
    if wanted and wanted != seen.line.queue and workloads.has_quota(seen.workload):
        yield finding("queue-changed", seen.line.job, wanted=wanted, **seen.line.words)


MANAGER_RULES: Final = RULES["manager-words"]
"""About quota on the manager."""


def _not_placed(seen: Seen) -> Iterator[Finding]:
    """Why no worker has it, by what the manager's Kueue and our check say."""
    line, where = seen.line, f"Workload {seen.line.workload}"
    if line.state is JobState.QUEUED:
        lacking = found_by(MANAGER_RULES, where, message(seen.workload, "QuotaReserved"), line.words)
        if lacking is not None:
            yield lacking
            if not lacking.blocking and seen.others_named is not None:
                yield from _held_quota(seen, named=seen.others_named)
        return
    if line.state not in (JobState.INACTIVE, JobState.REJECTED):
        yield from _waits(seen, where)
        return
    over = workloads.is_out_of_time(seen.workload)
    if over:
        yield finding("time-is-over", where, line.reason, instead=_more_time(seen.workload), **line.words)
    if line.state is JobState.REJECTED:
        yield _why_rejected(seen, where)
    elif not over:
        yield finding("inactive", where, line.reason, **line.words)


def _more_time(workload: Json) -> str:
    """The row that says how. Setting `spec.active` is not enough: Kueue v0.19.2 leaves a DeactivationTarget behind,
    which takes it back. Whoever deletes the Workload of pods ends them.
    """
    owner = workloads.owner(workload)
    return "time-is-over@pods" if owner is None or owner.gvk.kind == "Pod" else "time-is-over"


REJECTED: Final = {row.rejection: row for row in REMEDIES.values() if row.rejection}
"""By why our check was Rejected: a `Rejection`."""


def _why_rejected(seen: Seen, where: str) -> Finding:
    """Why a check was Rejected: a condition tells it if it is ours, for Kueue resets the check a moment later.

    Of an older version there is none; then the job tells whatever it can.
    """
    owner, behind, words = workloads.owner(seen.workload), seen.job or {}, seen.line.words
    if owner is None:
        return REMEDIES["rejected"].about(where, seen.line.reason, words)
    kind = next((each for each in AVAILABLE if each.resource.gvk == owner.gvk), None)
    refusal = kind.not_delegated(behind, CONTROLLER_NAME) if kind is not None and behind else None
    acting = kind.acted_on(behind) if kind is not None else ""
    by_job = Rejection.NOT_DELEGATED if refusal is not None else Rejection.ACTED_ON_HERE if acting else ""
    words |= {
        "refusal": refusal or "it names nobody, or somebody else",
        "unfit": (kind.refused(behind) if kind is not None else "") or "a rule of the job's kind fails for it",
        "acting": acting or "a controller of the manager acts on the job, and would run it here, too",
        "gvk": str(owner.gvk),
        "setting": setting_for(owner.gvk),
    }
    row = REJECTED.get(workloads.verdict(seen.workload) or by_job, REMEDIES["rejected"])
    return row.about(where, seen.line.reason, words)


def _waits(seen: Seen, where: str) -> Iterator[Finding]:
    """What a Workload with quota waits for."""
    chain, check, objects = seen.chain, seen.chain.check, seen.objects
    if check is None:
        return
    told = chain.says.head  # behind it stand the workers' words
    if not workloads.other_checks_ready(seen.workload, check):
        yield finding("other-checks", where, told)
    if MULTIKUEUE_CLUSTER in objects.unread:
        return
    known = [objects.cluster_answers[name] for name in chain.workers if name in objects.cluster_answers]
    unrecorded = chain.check_state is CheckState.READY and workloads.cluster_name(seen.workload) is None
    if check in objects.configs_by_check and not known:
        yield finding("no-worker-known", where, told)
    elif unrecorded and len(known) > 1 and all(said.connected for said in known):
        # While a worker is away it may be the one that has it.
        yield finding("recorded-twice", where, told)


EARLIER_RUN: Final = "earlier-run"
"""The id while it has time to end."""
DOES_NOT_END: Final = "copy-does-not-end"
"""The id after that."""


def _earlier_runs(seen: Seen) -> Iterator[Finding]:
    """What it waits for, since when; and once it takes too long, what holds it and the way out."""
    message = seen.chain.message
    for run in seen.chain.earlier_runs:
        words = {**seen.line.words, "worker": run.worker, "uid": run.uid, "run": str(run)}
        if not _takes_too_long(run, seen.workload, seen.now):
            yield finding(EARLIER_RUN, run.worker, message, ends=_ends(run), **words)
            continue
        pods = _late_pods(run, seen.objects)
        yield finding(DOES_NOT_END, run.worker, message, instead=_way_out(run, pods), hangs=_hangs(run, pods), **words)


def _late_pods(run: EarlierRun, objects: ManagerObjects) -> tuple[LatePod, ...]:
    """Those that the daemon has seen of it, with their nodes; empty: none, or what it has seen may not be read."""
    published = objects.published.get(run.worker)
    copies = published.facts.overdue or () if published is not None else ()
    return next((copy.pods for copy in copies if copy.uid == run.uid), ())


def _takes_too_long(run: EarlierRun, workload: Json, now: datetime) -> bool:
    """Of one that nobody has deleted: whether it is told for longer than its deletion and its pods take as a rule."""
    since = changed_at(workload, WAITS)
    if run.deleted is not None or since is None:
        return run.is_overdue(now)
    return (now - since - MARGIN).total_seconds() >= DEFAULT_GRACE


def _ends(run: EarlierRun) -> str:
    if run.deleted is None:
        return "it may run, and is being removed"
    until = f", its pods have until {timestamp(run.due)} to end" if run.due is not None else ""
    return f"it was deleted at {timestamp(run.deleted)}{until}"


def _hangs(run: EarlierRun, pods: Sequence[LatePod]) -> str:
    if run.deleted is None or run.due is None:
        return "it may run, and could not be deleted"
    return f"it was deleted at {timestamp(run.deleted)} and should have ended at {timestamp(run.due)}{_held(run, pods)}"


def _held(run: EarlierRun, pods: Sequence[LatePod]) -> str:
    late = "".join(f"; {pod}" for pod in pods[:MOST_NAMED])
    if not run.finalizers:
        return late or ", and a pod of it has not"
    return f", {held_by(run.finalizers)}{late}"


def _way_out(run: EarlierRun, pods: Sequence[LatePod]) -> str:
    """The key of the row with the way out; empty: nobody knows what holds it."""
    if run.deleted is None:
        return f"{DOES_NOT_END}@refused"
    if run.finalizers:
        return f"{DOES_NOT_END}@held"
    return f"{DOES_NOT_END}@node" if any(pod.node for pod in pods) else ""


MOST_HOLDING: Final = 20
"""Jobs with quota that are looked at, those that have had it longest: anybody may submit more."""
HELD_QUOTA: Final = "quota-held"
_LASTING: Final = frozenset(row.id for row in REMEDIES.values() if row.lasts)


def _held_quota(seen: Seen, *, named: bool) -> Iterator[Finding]:
    """The first job that holds quota of the same ClusterQueue and fits no worker: what waits behind it waits for
    somebody. It is `named` where who reads this may see what it was made of.
    """
    queue = seen.chain.cluster_queue_name
    holding = [
        other.workload
        for other in seen.objects.chains
        if workloads.cluster_queue(other.workload) == queue
        and state_of(other) in (JobState.WAITING, JobState.OFFERED)
        and ObjectKey.of(other.workload) != ObjectKey.of(seen.workload)
    ]
    holding.sort(key=lambda other: str(reserved_at(other)))
    for other in holding[:MOST_HOLDING]:
        of_other = findings_of(attrs.evolve(seen, workload=other, job=None, events=()))
        why = next((reason for reason in of_other if reason.blocking and reason.id in _LASTING), None)
        if why is not None:
            row, where = HELD_QUOTA if named else f"{HELD_QUOTA}@unnamed", f"ClusterQueue {queue}"
            about = {"title": title(other), "job": type_name(other), "namespace": namespace_of(other)}
            yield finding(row, where, queue=queue, reason=why.why, **about)
            return


_NARROWED: Final = frozenset(
    {Cause.NOT_NAMED, Cause.NOT_SELECTED, Cause.NOT_TOLERATED, Cause.OTHER_FLAVOR, Cause.UNREADABLE}
)


def _narrowed_out(seen: Seen) -> Iterator[Finding]:
    """That no worker may ever take a job, because of annotations, labels and taints: no time changes that."""
    reasons = {answer.reason for answer in seen.answers}
    if reasons & _NARROWED and reasons <= _NARROWED | {Cause.NEVER_FITS}:
        words = "; ".join(f"{answer.worker}: {answer.told}" for answer in seen.answers)
        yield finding("narrowed-out", f"Workload {seen.line.workload}", words)


def _of_answers(seen: Seen) -> Iterator[Finding]:
    """What keeps workers from taking it: nobody has to act as long as one of them may."""
    line, troubles = seen.line, list[Trouble]()
    for answer in seen.answers:
        worker, said = answer.worker, seen.objects.said_of(answer.worker)
        if not answer.is_trouble or said.is_lost_by_detaching:
            continue
        there = said.names.namespace(line.namespace) or line.namespace
        words = {**line.words, "secrets": seen.objects.daemon_namespace, **said.source, "namespace_there": there}
        trouble = trouble_of(
            worker, answer.told, {**words, **answer.about}, connected=answer.is_connected, cause=answer.cause
        )
        if trouble.remedy.id != UNKNOWN or not answer.is_word:
            troubles.append(trouble)
    problems = findings_of_workers(troubles)
    kept = {worker for problem in problems if problem.blocking for worker in problem.workers}
    may_take = any(
        answer.worker not in kept
        for answer in seen.answers
        if answer.state is not AnswerState.MISSING and answer.cause != Cause.SECOND_NAME
    )
    going = line.state in (*_WITHOUT_TROUBLE, JobState.REJECTED, JobState.INACTIVE)
    is_stuck = line.state is JobState.LOST or any(
        answer.worker == line.worker and answer.state is AnswerState.REFUSED for answer in seen.answers
    )
    for problem in problems:
        own = is_stuck and line.worker in problem.workers
        yield problem.mild(not own and (may_take or going))


def _is_about(problem: Finding, seen: Seen, worker: str) -> bool:
    """Whether something that is wrong on a worker is the job's queue there, or its namespace."""
    here = seen.chain.queue
    there = seen.objects.names_on(worker).local_queue(here)
    queues = seen.objects.queues_seen(worker)
    target = queues[0].local.get(there, "") if queues is not None else ""
    own = f"Namespace {here.namespace}", f"LocalQueue {here}", f"LocalQueue {there.name}", f"ClusterQueue {target}"
    return worker in problem.workers and problem.object in own
