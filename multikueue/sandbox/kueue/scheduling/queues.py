"""Queues: what they refer to, whether they are active, and what their statuses say.

Messages and reasons are Kueue's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol

import attrs

from multikueue.core.model.conditions import conditions, is_true, new_condition, updated
from multikueue.core.model.flavors import flavor_names
from multikueue.core.model.kinds import ADMISSION_CHECK, CLUSTER_QUEUE, LOCAL_QUEUE, NAMESPACE, RESOURCE_FLAVOR
from multikueue.core.model.labels import CONTROLLER_NAME
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, is_terminating, labels_of
from multikueue.core.model.quantities import written
from multikueue.core.model.workloads import cluster_queue, has_quota
from multikueue.sandbox.kueue.scheduling.cycle import Holder
from multikueue.sandbox.kueue.scheduling.ledger import Ledger
from multikueue.sandbox.kueue.scheduling.quota import FlavorResource, Quota
from multikueue.sandbox.label_selectors import matches

NAMESPACE_MISMATCH: Final = "Workload namespace doesn't match ClusterQueue selector"


class Lookup(Protocol):
    """Objects of one kind by key: a cache, or a dict in a test."""

    def get(self, key: ObjectKey, /) -> Json | None:
        """The object, if there is one."""


@attrs.frozen
class Configuration:
    """The objects an administrator makes, by resource."""

    objects: Mapping[Resource, Lookup]

    def local_queue_of(self, workload: Json) -> Json | None:
        """The LocalQueue it names, if there is one."""
        name = dig(workload, "spec", "queueName") or ""
        return self.objects[LOCAL_QUEUE].get(ObjectKey(workload["metadata"]["namespace"], name))

    def cluster_queue_of(self, workload: Json) -> Json | None:
        """The ClusterQueue that admitted it or, before that, the one behind its LocalQueue."""
        name = cluster_queue(workload) if has_quota(workload) else ""
        if not name:
            name = dig(self.local_queue_of(workload) or {}, "spec", "clusterQueue") or ""
        return self.objects[CLUSTER_QUEUE].get(ObjectKey("", name))

    def flavors_of(self, names: Iterable[str]) -> dict[str, Json]:
        """The flavors of these names that exist."""
        flavors = {name: self.objects[RESOURCE_FLAVOR].get(ObjectKey("", name)) for name in names}
        return {name: flavor for name, flavor in flavors.items() if flavor is not None}

    def inadmissible(self, workload: Json) -> str | None:
        """Why its queue cannot take it; None if it can."""
        name = dig(workload, "spec", "queueName") or ""
        queue = self.local_queue_of(workload)
        if queue is None:
            return f"LocalQueue {name} doesn't exist"
        if is_stopped(queue):
            return f"LocalQueue {name} is inactive"
        target = dig(queue, "spec", "clusterQueue") or ""
        cluster_queue = self.objects[CLUSTER_QUEUE].get(ObjectKey("", target))
        if cluster_queue is None:
            return f"ClusterQueue {target} doesn't exist"
        if self.inactivity(cluster_queue) is not None:
            return f"ClusterQueue {target} is inactive"
        return None

    def inactivity(self, queue: Json) -> tuple[str, str] | None:
        """Reason and message of an inactive ClusterQueue; None if it can admit."""
        if is_terminating(queue):
            return "Terminating", "Can't admit new workloads; clusterQueue is terminating"
        obstacles = list(self._obstacles(queue))
        if not obstacles:
            return None
        return obstacles[0][0], f"Can't admit new workloads: {', '.join(message for _, message in obstacles)}."

    def takes_namespace(self, queue: Json, namespace: str) -> bool:
        """Whether the ClusterQueue's selector matches the namespace. No selector matches nothing; `{}` everything."""
        selector = dig(queue, "spec", "namespaceSelector")
        labels = labels_of(self.objects[NAMESPACE].get(ObjectKey("", namespace)) or {})
        return selector is not None and matches(selector, labels)

    def _obstacles(self, queue: Json) -> Iterable[tuple[str, str]]:
        if is_stopped(queue):
            yield "Stopped", "is stopped"
        missing = [
            name for name in flavor_names(queue) if self.objects[RESOURCE_FLAVOR].get(ObjectKey("", name)) is None
        ]
        if missing:
            yield "FlavorNotFound", f"references missing ResourceFlavor(s): {','.join(missing)}"
        rules = check_rules(queue)
        known = {name: self.objects[ADMISSION_CHECK].get(ObjectKey("", name)) for name in rules}
        absent = [name for name, check in known.items() if check is None]
        if absent:
            yield "AdmissionCheckNotFound", f"references missing AdmissionCheck(s): {','.join(absent)}"
        idle = [name for name, check in known.items() if check is not None and not is_true(check, "Active")]
        if idle:
            yield "AdmissionCheckInactive", f"references inactive AdmissionCheck(s): {','.join(idle)}"
        ours = [name for name, check in known.items() if dig(check, "spec", "controllerName") == CONTROLLER_NAME]
        if len(ours) > 1:
            yield (
                "MultipleMultiKueueAdmissionChecks",
                f"Cannot use multiple MultiKueue AdmissionChecks on the same ClusterQueue, found: {','.join(ours)}",
            )
        partial = [name for name in ours if rules[name]]
        if partial:
            yield (
                "MultiKueueAdmissionCheckAppliedPerFlavor",
                f"Cannot specify MultiKueue AdmissionCheck per flavor, found: {','.join(partial)}",
            )


def is_stopped(queue: Json) -> bool:
    """Whether a LocalQueue or ClusterQueue is told to hold."""
    return (dig(queue, "spec", "stopPolicy") or "None") != "None"


def check_rules(queue: Json) -> dict[str, list[str]]:
    """The admission checks of a ClusterQueue, sorted, and the flavors each is limited to (none: all flavors)."""
    listed = dig(queue, "spec", "admissionChecksStrategy", "admissionChecks") or []
    return {entry["name"]: entry.get("onFlavors") or [] for entry in sorted(listed, key=lambda entry: entry["name"])}


def check_names(queue: Json, workload: Json) -> list[str]:
    """The checks a Workload has to pass: those for all flavors, and those for a flavor it was assigned."""
    assignments = dig(workload, "status", "admission", "podSetAssignments") or []
    assigned = {flavor for entry in assignments for flavor in (entry.get("flavors") or {}).values()}
    rules = check_rules(queue)
    return [name for name, flavors in rules.items() if not flavors or assigned.intersection(flavors)]


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
    for (flavor, resource), nominal in Quota.of(queue).nominal().items():
        entry: Json = {"name": resource, "total": written(resource, total[flavor, resource])}
        over = written(resource, max(0, total[flavor, resource] - nominal))
        result.setdefault(flavor, []).append({**entry, "borrowed": over} if borrowed else entry)
    return [{"name": flavor, "resources": resources} for flavor, resources in result.items()]
