"""A Workload whose job was deleted without it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from multikueue.core.model import workloads
from multikueue.core.model.labels import JOB_UID_LABEL
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import labels_of
from multikueued.reports.remedies.remedy import Finding, filled

_REMOVE: Final = "kubectl -n {namespace} delete workload {workload}"


def deleted_job_findings(workload: Json) -> Iterator[Finding]:
    """That its job was deleted by a client that leaves behind what belongs to it: then nothing else names it.

    Args:
        workload: the manager's.
    """
    key = ObjectKey.of(workload)
    remove = filled(_REMOVE, {"namespace": key.namespace, "workload": key.name})
    where = f"Workload {key.name}"
    if workloads.finish_reason(workload) == workloads.OWNER_NOT_FOUND:
        why = "its job was deleted without it (orphaned), and what ran on a worker was stopped"
        yield Finding("job-deleted", where, why, "", f"nothing; to be rid of the Workload: {remove}").mild()
    elif workloads.owner(workload) is None and JOB_UID_LABEL in labels_of(workload):
        why = "its job was deleted without it (orphaned): what runs on a worker goes on"
        yield Finding("job-deleted", where, why, "", f"to stop it: {remove}").mild()
