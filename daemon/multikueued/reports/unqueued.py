"""Why a job has no Workload, and what to do."""

from __future__ import annotations

import attrs

from multikueue.core.model.labels import PRIORITY_CLASS_LABEL, QUEUE_LABEL
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import labels_of, name_of, namespace_of
from multikueued.reports.chain import queue_findings
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.remedies.audience import Audience, audience_of, read_by
from multikueued.reports.remedies.remedy import Finding, finding


@attrs.frozen(kw_only=True)
class Unqueued:
    """What `multikueue explain` prints for a job without a Workload."""

    job: str
    """TYPE/NAME."""
    namespace: str
    summary: str
    audience: Audience = Audience.OPERATOR
    """Whom the remedies are for."""
    findings: tuple[Finding, ...] = ()
    not_checked: tuple[str, ...] = ()
    """What could not be read, and so says nothing."""


def unqueued(job: Json, type_name: str, objects: ManagerObjects) -> Unqueued:
    """Why there is no Workload for a job, and what to do.

    Args:
        job: the job object.
        type_name: TYPE/NAME.
        objects: of the manager.
    """
    audience = audience_of(objects.unread)
    return Unqueued(
        job=type_name,
        namespace=namespace_of(job),
        summary="Kueue has no Workload for it.",
        audience=audience,
        findings=read_by(audience, [_why_unqueued(job, type_name, objects)]),
    )


def _why_unqueued(job: Json, type_name: str, objects: ManagerObjects) -> Finding:
    namespace, queue = namespace_of(job), labels_of(job).get(QUEUE_LABEL, "")
    here = sorted(name_of(queue) for queue in objects.local_queues if ObjectKey.of(queue).namespace == namespace)
    if not queue:
        named = f": {', '.join(here)}" if here else ""
        return finding("no-queue", type_name, namespace=namespace, queues=named)
    if queue not in here:
        submitted = {"metadata": {"namespace": namespace}, "spec": {"queueName": queue}}
        return next(queue_findings(objects.chain(submitted)))
    priority = labels_of(job).get(PRIORITY_CLASS_LABEL, "")
    row = "no-workload@priority" if priority else "no-workload"
    return finding(row, type_name, job=type_name, namespace=namespace, priority=priority)
