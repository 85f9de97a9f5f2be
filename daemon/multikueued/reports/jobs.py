"""One line about each job: where it is, in which state, since when and why; and where it was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

import attrs

from multikueue.adapters import AVAILABLE
from multikueue.core.model import placements as noted
from multikueue.core.model import workloads
from multikueue.core.model.conditions import changed_at, created_at, message, parse_timestamp
from multikueue.core.model.kinds import CLUSTER_QUEUE, REFUSED
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, is_terminating, labels_of
from multikueue.core.model.worker_names import origin_key
from multikueue.core.model.workloads import CheckState
from multikueued.reports.objects import Chain
from multikueued.reports.typenames import type_name


class JobState(StrEnum):
    """Where a job is on its way."""

    QUEUED = "Queued"
    """It waits for quota of the manager."""
    WAITING = "Waiting"
    """It has quota, and is offered to no worker."""
    OFFERED = "Offered"
    """Workers have a copy of its Workload; none has admitted it."""
    STARTING = "Starting"
    """A worker is recorded; its job is being created there."""
    RUNNING = "Running"
    """A worker has it."""
    LOST = "Lost"
    """The worker that has it cannot be reached."""
    STOPPING = "Stopping"
    """It is being evicted or deleted."""
    RETRYING = "Retrying"
    """It was sent back: the manager's Kueue is about to evict it and to queue it again."""
    REJECTED = "Rejected"
    """A check rejected it, for which Kueue deactivates it: it does not run as it is."""
    INACTIVE = "Inactive"
    """It was deactivated for another reason: nothing happens until somebody activates it."""
    LOCAL = "Local"
    """No check of ours: it is none of MultiKueue's business, and runs on the manager."""
    FINISHED = "Finished"
    """It has ended."""
    FAILED = "Failed"
    """It has ended."""


WAITING_STATES: Final = (JobState.QUEUED, JobState.WAITING, JobState.OFFERED, JobState.RETRYING)
RUNNING_STATES: Final = (JobState.STARTING, JobState.RUNNING, JobState.LOST)
ENDED_STATES: Final = (JobState.FINISHED, JobState.FAILED)
_NEVER_READY: Final = frozenset(kind.resource.gvk for kind in AVAILABLE if kind.keeps_check_pending)
"""The kinds whose check may stay Pending while a worker has the job."""
_DECIDING: Final = {
    JobState.QUEUED: "QuotaReserved",
    JobState.WAITING: "QuotaReserved",
    JobState.OFFERED: "QuotaReserved",
    JobState.STOPPING: "Evicted",
    JobState.FINISHED: "Finished",
    JobState.FAILED: "Finished",
    JobState.INACTIVE: "Evicted",
}
"""The condition that tells since when a job is in a state; in all others the check does."""


@attrs.frozen
class JobReport:
    """One job."""

    job: str
    """TYPE/NAME."""
    namespace: str
    state: JobState
    worker: str = ""
    """The recorded worker; empty: none."""
    offered_to: tuple[str, ...] = ()
    """The workers that are asked."""
    queue: str = ""
    """The LocalQueue."""
    cluster_queue: str = ""
    workload: str = ""
    """Name of the Workload."""
    user: str = ""
    """Value of the user label; empty: none, or no label was named."""
    created: datetime | None = None
    since: datetime | None = None
    """Since when it is in this state, as far as that is known."""
    reason: str = ""
    """Why it is in this state: what somebody has to mend, or the words of Kueue, the check, or the worker."""
    place: int | None = None
    """Its place, 1 is next: without quota in its ClusterQueue, held among those that share a worker with it."""
    start_earliest: datetime | None = None
    """Four of five such jobs that had waited so long started between this and `start_latest`."""
    start_latest: datetime | None = None

    @property
    def words(self) -> dict[str, str]:
        """What remedies fill in. `worker` is the one that has the job: what is about another one says so itself."""
        named = {"job": self.job, "namespace": self.namespace, "workload": self.workload}
        return {**named, "queue": self.queue, "cluster_queue": self.cluster_queue, "worker": self.worker}


def job_report(chain: Chain, user_label: str = "") -> JobReport:
    """Report one Workload."""
    workload, state, key = chain.workload, state_of(chain), ObjectKey.of(chain.workload)
    created = created_at(workload)
    was_rejected = state is JobState.REJECTED and workloads.was_rejected(workload)  # its check is Pending by then
    deciding = "Evicted" if was_rejected else _DECIDING.get(state)
    decided = changed_at(workload, deciding) if deciding is not None else chain.check_since
    return JobReport(
        job=type_name(workload),
        namespace=key.namespace,
        state=state,
        worker=workloads.cluster_name(workload) or "",
        offered_to=chain.offered_to,
        queue=chain.queue.name,
        cluster_queue=chain.cluster_queue_name,
        workload=key.name,
        user=labels_everywhere(workload).get(user_label, "") if user_label else "",
        created=created,
        since=decided or created,
        reason=reason_of(chain, state),
    )


def state_of(chain: Chain) -> JobState:
    """The state of the job behind a Workload."""
    workload = chain.workload
    if workloads.is_finished(workload):
        return JobState.FAILED if workloads.finish_reason(workload) == "Failed" else JobState.FINISHED
    if is_terminating(workload):
        return JobState.STOPPING
    has_queue = chain.cluster_queue is not None or CLUSTER_QUEUE in chain.objects.unread
    if chain.is_copy or (not chain.check and has_queue and not chain.may_be_checked):
        return JobState.LOCAL
    if chain.check_state is CheckState.REJECTED:
        return JobState.REJECTED
    has_quota = workloads.has_quota(workload)
    if not workloads.is_active(workload):
        over = JobState.REJECTED if workloads.was_rejected(workload) else JobState.INACTIVE
        return JobState.STOPPING if has_quota else over
    if has_quota and workloads.is_evicted(workload):
        return JobState.STOPPING
    if chain.check_state is CheckState.RETRY:
        return JobState.RETRYING
    return _with_quota(chain) if has_quota else JobState.QUEUED


def _with_quota(chain: Chain) -> JobState:
    worker = workloads.cluster_name(chain.workload)
    if worker is None:
        return JobState.OFFERED if chain.offered_to else JobState.WAITING
    if not chain.objects.said_of(worker).connected:
        return JobState.LOST
    owner = workloads.owner(chain.workload)
    has_it = chain.check_state is CheckState.READY or (owner is not None and owner.gvk in _NEVER_READY)
    return JobState.RUNNING if has_it or not chain.check else JobState.STARTING


def reason_of(chain: Chain, state: JobState) -> str:
    """Why a job is in its state, in the words of whoever decided that."""
    workload = chain.workload
    match state:
        case JobState.QUEUED:
            return _why_queued(chain)
        case JobState.LOST:
            cluster = chain.objects.clusters_by_name.get(workloads.cluster_name(workload) or "", {})
            return message(cluster, "Active") or "its MultiKueueCluster does not exist, or says nothing yet"
        case JobState.RUNNING | JobState.STARTING if not chain.earlier_runs:
            return "; ".join(chain.says.parts)
        case JobState.FINISHED | JobState.FAILED:
            return message(workload, "Finished")
        case JobState.INACTIVE | JobState.REJECTED if not workloads.is_active(workload):
            return message(workload, "Evicted") or "spec.active is false"
        case JobState.STOPPING:
            return "it is being deleted" if is_terminating(workload) else message(workload, "Evicted")
        case JobState.LOCAL:
            return _why_local(chain)
    return chain.message


def _why_queued(chain: Chain) -> str:
    """Kueue's words, and what it was evicted for, which they say no more; or the run that it was sent back for."""
    workload = chain.workload
    evicted = message(workload, "Evicted")
    why = message(workload, "QuotaReserved") or evicted
    if workloads.is_evicted(workload) and evicted not in why:
        why = f"{why}; it was evicted: {evicted}"
    if chain.earlier_runs:  # which do not end: it was sent back for them
        first = chain.earlier_runs[0]
        why = f'sent back: worker cluster "{first.worker}" still has {first}'
    if not chain.has_no_queue:
        return why
    missing = f'LocalQueue "{chain.queue.name}" does not exist in namespace "{chain.queue.namespace}"'
    return (why or missing) + chain.queue_meant


def _why_local(chain: Chain) -> str:
    """Why nobody dispatches it from here."""
    workload = chain.workload
    if chain.is_own_copy:
        return f'it is the copy of Workload "{origin_key(workload)}": this cluster is a worker, too'
    if chain.is_copy:
        return f'it is the copy of Workload "{origin_key(workload)}" of a manager: ask there'
    return "its ClusterQueue has no MultiKueue check"


def labels_everywhere(workload: Json) -> Mapping[str, str]:
    """The labels of a Workload and, beneath them, those of its pod templates: Kueue copies few labels of a job."""
    labels: dict[str, str] = {}
    for pod_set in dig(workload, "spec", "podSets") or []:
        labels.update(dig(pod_set, "template", "metadata", "labels") or {})
    return labels | labels_of(workload)


@attrs.frozen
class ReportedPlacement:
    """One worker that had the job."""

    worker: str
    since: datetime | None
    until: datetime | None
    why: str
    """Why it left."""
    ran: bool = True
    """Whether its job was there: one that refuses it, or where it is still to be created, has only admitted it."""


def placements(workload: Json, *, starting: bool = False) -> tuple[ReportedPlacement, ...]:
    """The last workers that had a Workload, the earliest first, the one that has it or had it at its end included.

    The annotation has those that are over; what cannot be read of it is left out.

    Args:
        workload: the manager's.
        starting: whether its job is still to be created on its worker.
    """
    known = [
        ReportedPlacement(
            entry.get("worker", ""),
            parse_timestamp(entry.get("since")),
            parse_timestamp(entry.get("until")),
            entry.get("why", ""),
            ran=entry.get("cause") != REFUSED,
        )
        for entry in noted.placements(workload)
    ]
    if (lasts := noted.placement_of(workload)) is not None:
        ended = workloads.is_finished(workload)
        until, why = (changed_at(workload, "Finished"), "it has ended") if ended else (None, "")
        known.append(ReportedPlacement(lasts.worker, parse_timestamp(lasts.since), until, why, ran=not starting))
    return tuple(known)


@attrs.frozen
class JobFilter:
    """Which jobs to show; what is empty does not matter."""

    namespace: str = ""
    queue: str = ""
    """A LocalQueue or a ClusterQueue."""
    worker: str = ""
    """Recorded, or asked."""
    states: frozenset[JobState] = frozenset()
    user: str = ""

    def takes(self, job: JobReport) -> bool:
        """Whether to show a job."""
        return (
            self.namespace in ("", job.namespace)
            and self.queue in ("", job.queue, job.cluster_queue)
            and self.worker in ("", job.worker, *job.offered_to)
            and (not self.states or job.state in self.states)
            and self.user in ("", job.user)
        )


def job_reports(chains: Iterable[Chain], chosen: JobFilter, *, user_label: str = "") -> tuple[JobReport, ...]:
    """The jobs that MultiKueue looks after, by namespace and age.

    Args:
        chains: of their Workloads.
        chosen: which of them.
        user_label: the label that names a job's user.
    """
    reports = (job_report(chain, user_label) for chain in chains)
    return in_place(report for report in reports if chosen.takes(report))


def in_place(jobs: Iterable[JobReport]) -> tuple[JobReport, ...]:
    """Jobs by namespace and age."""
    return tuple(sorted(jobs, key=_place))


def _place(job: JobReport) -> tuple[str, str, str]:
    return job.namespace, job.created.isoformat() if job.created is not None else "", job.job
