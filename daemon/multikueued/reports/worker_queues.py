"""The queues of a worker as values, and whether a Workload could ever have quota there. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from multikueue.core.config.quota import cohort_of
from multikueue.core.dispatchers.reasons import Reason
from multikueue.core.model.conditions import condition
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, name_of
from multikueue.core.model.quantities import thousandths
from multikueue.core.model.worker_names import WorkerNames
from multikueue.errors import Cause

UNLIMITED: Final = float("inf")


@attrs.frozen
class QueuesOnWorker:
    """The queues of a worker."""

    local: Mapping[ObjectKey, str]
    """The ClusterQueue of each LocalQueue."""
    cluster: Mapping[str, Json]
    stopped: frozenset[ObjectKey] = frozenset()
    """The LocalQueues that somebody has stopped."""

    @classmethod
    def of(cls, local: Iterable[Json], cluster: Iterable[Json]) -> QueuesOnWorker:
        """From its LocalQueues and ClusterQueues."""
        by_key = {ObjectKey.of(queue): queue for queue in local}
        leads = {key: leads_to(queue) for key, queue in by_key.items()}
        stopped = frozenset(key for key, queue in by_key.items() if is_stopped(queue))
        return cls(leads, {name_of(queue): queue for queue in cluster}, stopped)


def local_queue_of(workload: Json) -> ObjectKey:
    """The LocalQueue of a Workload on the manager."""
    return ObjectKey(ObjectKey.of(workload).namespace, str(dig(workload, "spec", "queueName") or ""))


def leads_to(local_queue: Json) -> str:
    """The ClusterQueue of a LocalQueue; empty: it names none."""
    return str(dig(local_queue, "spec", "clusterQueue") or "")


def quota_mismatch(workload: Json, queues: QueuesOnWorker, names: WorkerNames) -> Reason | None:
    """Why a worker could never admit a Workload, by what the manager reserved for it; None: it could.

    It is a necessary condition only: of a cohort no limit is known but the queue's own `borrowingLimit`. `names` is how
    the worker calls namespaces and queues.
    """
    here = local_queue_of(workload)
    if why := names.why_none(here.namespace):
        return Reason(Cause.NAMESPACE_UNNAMED, why)
    key = names.local_queue(here)
    if key not in queues.local:
        return Reason(Cause.NO_LOCAL_QUEUE, f'LocalQueue "{key}" does not exist', about={"missing": key.name})
    leads = queues.local[key]
    if flaw := queue_flaw(queues, leads):
        about = {"kind": "ClusterQueue", "name": leads}
        return Reason(Cause.QUEUE_INACTIVE, f'ClusterQueue "{leads}" {flaw}', about=about)
    limits = _limits(queues.cluster[leads])
    assigned = dig(workload, "status", "admission", "podSetAssignments") or []
    for entry in assigned:
        for resource, amount in (entry.get("resourceUsage") or {}).items():
            if resource not in limits and resource == "pods":
                continue  # counted only where a queue covers it
            if resource not in limits:
                why = f'its ClusterQueue "{leads}" has no quota for {resource}'
                return Reason(Cause.NEVER_FITS, why, about={"resource": resource})
            wanted, most = thousandths(amount), max(limits[resource])
            if wanted > most:
                why = f"insufficient quota for {resource} ({wanted / 1000:g} > {most / 1000:g})"
                return Reason(Cause.NEVER_FITS, why, about={"resource": resource})
    return None


def is_stopped(queue: Json) -> bool:
    """Whether somebody has stopped a ClusterQueue, or a LocalQueue."""
    return dig(queue, "spec", "stopPolicy") not in (None, "None")


def queue_flaw(queues: QueuesOnWorker, name: str) -> str:
    """Why a ClusterQueue of a worker takes no jobs, with the words of its condition; empty: it does."""
    queue = queues.cluster.get(name)
    if queue is None:
        return "does not exist"
    if is_stopped(queue):
        return "is stopped"
    active = condition(queue, "Active") or {}
    words = ": ".join(str(active[field]) for field in ("reason", "message") if active.get(field))
    return f"is not active ({words})" if active.get("status") == "False" else ""


def _limits(queue: Json) -> dict[str, list[float]]:
    """What a ClusterQueue could give of each resource, by flavor, in thousandths."""
    limits: dict[str, list[float]] = {}
    borrows = bool(cohort_of(queue))
    for group in dig(queue, "spec", "resourceGroups") or []:
        for flavor in group.get("flavors") or []:
            for entry in flavor.get("resources") or []:
                nominal, more = thousandths(entry.get("nominalQuota") or 0), entry.get("borrowingLimit")
                limit = UNLIMITED if borrows and more is None else nominal + (thousandths(more) if borrows else 0)
                limits.setdefault(entry["name"], []).append(limit)
    return limits
