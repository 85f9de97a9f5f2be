"""One line about each queue that leads to workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from multikueue.core.model.conditions import is_true, message
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueued.reports.jobs import RUNNING_STATES, WAITING_STATES, JobReport, JobState
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.quotas import amounts, nominal, sums
from multikueued.reports.worker_queues import leads_to


@attrs.frozen
class QueueReport:
    """One ClusterQueue of the manager with a check of ours."""

    name: str
    check: str
    active: bool
    local_queues: tuple[str, ...]
    """Those that lead to it, as NAMESPACE/NAME."""
    queued: int
    """Jobs without quota."""
    waiting: int
    """Jobs with quota and without a worker."""
    running: int
    """Jobs with a worker."""
    used: Mapping[str, str]
    """Quota that is reserved, by resource."""
    total: Mapping[str, str]
    """Nominal quota, by resource."""
    message: str
    """Why it is not active."""


def queue_reports(objects: ManagerObjects, jobs: Sequence[JobReport]) -> tuple[QueueReport, ...]:
    """The ClusterQueues that lead to workers."""
    queues = sorted(objects.queues_by_name.items())
    checked = ((name, queue, objects.check_of_queue(queue)) for name, queue in queues)
    return tuple(_report(name, queue, check, objects, jobs) for name, queue, check in checked if check is not None)


def _report(name: str, queue: Json, check: str, objects: ManagerObjects, jobs: Sequence[JobReport]) -> QueueReport:
    own = [job for job in jobs if job.cluster_queue == name]
    waiting = sum(job.state in WAITING_STATES for job in own)
    queued = sum(job.state is JobState.QUEUED for job in own)
    active = is_true(queue, "Active")
    return QueueReport(
        name=name,
        check=check,
        active=active,
        local_queues=tuple(
            sorted(str(ObjectKey.of(local)) for local in objects.local_queues if leads_to(local) == name)
        ),
        queued=queued,
        waiting=waiting - queued,
        running=sum(job.state in RUNNING_STATES for job in own),
        used=amounts(sums(dig(queue, "status", "flavorsReservation"), "total")),
        total=amounts(nominal(queue)),
        message="" if active else message(queue, "Active") or "it has no status yet",
    )
