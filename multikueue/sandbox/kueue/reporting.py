"""The status of queues: whether they are active, how much waits, runs and is used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from multikueue.core.model.conditions import conditions, new_condition, updated
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.quantities import written
from multikueue.sandbox.kueue.configuration import Configuration, is_stopped
from multikueue.sandbox.kueue.ledger import Ledger
from multikueue.sandbox.kueue.quota import FlavorResource, Quota
from multikueue.sandbox.kueue.scheduling import Holder


def cluster_queue_status(
    queue: Json, local_queues: Sequence[Json], configuration: Configuration, ledger: Ledger, now: datetime
) -> Json:
    """The status a ClusterQueue should have."""
    obstacle = configuration.inactivity(queue)
    reason, message = obstacle or ("Ready", "Can admit new workloads")
    holders = ledger.holders(queue["metadata"]["name"])
    return {
        **_counts(holders, [ObjectKey.of(entry) for entry in local_queues], ledger),
        "conditions": _active(queue, obstacle is None, reason, message, now),
        "flavorsReservation": _usage(queue, holders, borrowed=True),
        "flavorsUsage": _usage(queue, _admitted(holders, ledger), borrowed=True),
    }


def local_queue_status(
    queue: Json, cluster_queue: Json | None, configuration: Configuration, ledger: Ledger, now: datetime
) -> Json:
    """The status a LocalQueue should have."""
    key = ObjectKey.of(queue)
    active, reason, message = _local_activity(queue, cluster_queue, configuration)
    held = ledger.holders(dig(cluster_queue or {}, "metadata", "name") or "")
    own = [holder for holder in held if _queue_of(holder, ledger) == key]
    shown = cluster_queue or {}
    return {
        **_counts(own, [key], ledger),
        "conditions": _active(queue, active, reason, message, now),
        "flavorsReservation": _usage(shown, own, borrowed=False),
        "flavorsUsage": _usage(shown, _admitted(own, ledger), borrowed=False),
    }


def _local_activity(queue: Json, cluster_queue: Json | None, configuration: Configuration) -> tuple[bool, str, str]:
    if is_stopped(queue):
        return False, "Stopped", "LocalQueue is stopped"
    if cluster_queue is None:
        return False, "ClusterQueueDoesNotExist", "Can't submit new workloads to clusterQueue"
    if configuration.inactivity(cluster_queue) is not None:
        return False, "ClusterQueueIsInactive", "Can't submit new workloads to clusterQueue"
    return True, "Ready", "Can submit new workloads to localQueue"


def _active(queue: Json, status: bool, reason: str, message: str, now: datetime) -> list[Json]:
    generation = dig(queue, "metadata", "generation")
    return updated(conditions(queue), new_condition("Active", status, reason, message, now=now, generation=generation))


def _counts(holders: Sequence[Holder], local_queues: Iterable[ObjectKey], ledger: Ledger) -> Json:
    return {
        "pendingWorkloads": ledger.waiting_count(local_queues),
        "reservingWorkloads": len(holders),
        "admittedWorkloads": len(_admitted(holders, ledger)),
    }


def _admitted(holders: Sequence[Holder], ledger: Ledger) -> list[Holder]:
    return [holder for holder in holders if ledger.is_admitted(holder.key)]


def _queue_of(holder: Holder, ledger: Ledger) -> ObjectKey:
    workload = ledger.workloads.get(holder.key) or {}
    return ObjectKey(holder.key.namespace, dig(workload, "spec", "queueName") or "")


def _usage(queue: Json, holders: Sequence[Holder], *, borrowed: bool) -> list[Json]:
    total: Counter[FlavorResource] = Counter()
    for holder in holders:
        total.update(holder.usage)
    result: dict[str, list[Json]] = {}
    for flavor, resource in Quota.of(queue).nominal():
        entry: Json = {"name": resource, "total": written(resource, total[flavor, resource])}
        result.setdefault(flavor, []).append({**entry, "borrowed": "0"} if borrowed else entry)
    return [{"name": flavor, "resources": resources} for flavor, resources in result.items()]
