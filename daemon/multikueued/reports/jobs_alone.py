"""What is known of jobs whose Workloads may not be read: a role like `view` shows the jobs of a namespace alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from multikueue.adapters import AVAILABLE, JobKind, SafeAdapter
from multikueue.core.model.conditions import created_at
from multikueue.core.model.labels import QUEUE_LABEL
from multikueue.core.model.names import GVK, Json, ObjectKey
from multikueue.core.model.objects import dig, labels_of, name_of
from multikueued.reports.jobs import JobFilter, JobReport, JobState, in_place
from multikueued.reports.typenames import type_of

_KINDS: Final = {kind.resource.gvk: kind for kind in AVAILABLE}


def has_queue(job: Json) -> bool:
    """Whether Kueue looks after a job."""
    return QUEUE_LABEL in labels_of(job)


def job_alone(job: Json, user_label: str = "") -> JobReport:
    """Report a job by itself; which worker has it is not known."""
    gvk = GVK.of(job["apiVersion"], job["kind"])
    return JobReport(
        job=f"{type_of(gvk)}/{name_of(job)}",
        namespace=ObjectKey.of(job).namespace,
        state=_state(job, _KINDS.get(gvk)),
        queue=labels_of(job).get(QUEUE_LABEL, ""),
        user=labels_of(job).get(user_label, ""),
        created=created_at(job),
    )


def jobs_alone(jobs: Iterable[Json], chosen: JobFilter, user_label: str = "") -> tuple[JobReport, ...]:
    """The jobs that Kueue looks after, by namespace and age."""
    reports = (job_alone(job, user_label) for job in jobs if has_queue(job))
    return in_place(report for report in reports if chosen.takes(report))


def summary_alone(job: Json) -> str:
    """Where a job is, in a sentence."""
    return _SUMMARIES.get(job_alone(job).state, "It waits for quota, or for a worker cluster that takes it.")


_SUMMARIES: Final = {
    JobState.RUNNING: "Kueue lets it run: a worker cluster has it.",
    JobState.FINISHED: "It has finished.",
    JobState.FAILED: "It has failed.",
    JobState.STOPPING: "It is being deleted.",
}


def _state(job: Json, kind: JobKind | None) -> JobState:
    """By the job itself: Kueue suspends what has no quota, and what no worker has."""
    outcome = SafeAdapter(kind).outcome(job) if kind is not None else None
    if outcome is not None:
        return JobState.FAILED if outcome.reason == "Failed" else JobState.FINISHED
    if dig(job, "metadata", "deletionTimestamp"):
        return JobState.STOPPING
    path = kind.copies.suspend if kind is not None else None
    return JobState.RUNNING if path is not None and dig(job, *path) is False else JobState.WAITING
