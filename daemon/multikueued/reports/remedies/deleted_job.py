"""A Workload whose job was deleted without it."""

from __future__ import annotations

from collections.abc import Iterator

from multikueue.core.model import workloads
from multikueue.core.model.labels import JOB_UID_LABEL
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import labels_of
from multikueued.reports.remedies.remedy import Finding, finding


def deleted_job_findings(workload: Json) -> Iterator[Finding]:
    """That its job was deleted by a client that leaves behind what belongs to it: then nothing else names it.

    Args:
        workload: the manager's.
    """
    key = ObjectKey.of(workload)
    words, where = {"namespace": key.namespace, "workload": key.name}, f"Workload {key.name}"
    if workloads.finish_reason(workload) == workloads.OWNER_NOT_FOUND:
        yield finding("job-deleted@finished", where, **words)
    elif workloads.owner(workload) is None and JOB_UID_LABEL in labels_of(workload):
        yield finding("job-deleted", where, **words)
