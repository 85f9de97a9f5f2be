"""What workers' Kueues and the manager's tell, as the scored dispatcher reads it."""

from __future__ import annotations

import json
from typing import Any, Final

from multikueue.core.dispatchers.scored.facts import Group
from multikueue.core.dispatchers.scored.room import Node, Quota
from multikueue.core.dispatchers.scored.starts import Size, size
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.flavors import Flavor
from multikueue.core.model.names import Json
from multikueue.core.model.placements import FAULT
from tests.dispatch.clock import moment
from tests.dispatch.kueue import ClusterQueue
from tests.dispatch.load import Worker
from tests.dispatch.quota import QuotaNode
from tests.dispatch.workloads import Workload

RESOURCES: Final = ("nvidia.com/gpu", "cpu")
NAMESPACE: Final = "team"
MODEL: Final = "gpu"
"""The label of a flavor that says its model: a job that can use one only selects it."""


def conditions(said: str | None) -> tuple[Json, ...]:
    """Of a copy whose Kueue says why it waits."""
    if said is None:
        return ()
    if said == "BlockedOnPreemptionGates":
        return ({"type": said, "status": "True"},)
    return ({"type": "QuotaReserved", "status": "False", "reason": said},)


def node(queue: ClusterQueue, flavors: list[str]) -> Node:
    """A ClusterQueue's quota and use, in thousandths."""
    own: QuotaNode = queue.node
    keys = [(flavor, resource) for flavor in flavors for resource in RESOURCES]
    quotas = {key: Quota(amount * 1000) for key, amount in zip(keys, own.nominal, strict=True)}
    usage = {key: amount * 1000 for key, amount in zip(keys, own.usage, strict=True)}
    return Node("fleet" if own.parent else None, quotas, usage)


def group(worker: Worker) -> Group:
    """A worker's flavors, with what their ResourceFlavors say."""
    names = tuple(flavor.model for flavor in worker.flavors)
    return Group(frozenset(RESOURCES), names, tuple(Flavor(name, ((MODEL, name),)) for name in names))


def kind(workload: Workload) -> tuple[str, Size]:
    """Its ClusterQueue on the manager, and its size."""
    needs = dict(zip(RESOURCES, workload.job.request, strict=True))
    return f"queue-{workload.job.queue}", size(needs)


def manifest(workload: Workload) -> Json:
    """Its Workload on the manager, as Kueue and we write it."""
    job = workload.job
    annotations: dict[str, Any] = {}
    if job.model:
        annotations["multikueue.dev/cluster-selector"] = f"gpu/{job.model}"
    if job.region:
        annotations["multikueue.dev/cluster-preference"] = f"region={job.region}:100"
    if workload.placements:
        annotations["multikueue.dev/placements"] = json.dumps(
            [
                {"worker": placement.worker, "until": timestamp(moment(placement.until)), "why": placement.reason}
                | ({"fault": FAULT} if placement.reason != "Preempted" else {})
                for placement in workload.placements
            ]
        )
    selector = {MODEL: job.model} if job.model else {}
    usage = {name: str(amount) for name, amount in zip(RESOURCES, job.request, strict=True) if amount}
    reserved = timestamp(moment(workload.reserved or 0.0))
    return {
        "metadata": {
            "name": job.name,
            "namespace": NAMESPACE,
            "uid": f"uid-{job.name}",
            "creationTimestamp": timestamp(moment(workload.queued)),
            "annotations": annotations,
        },
        "spec": {
            "priority": job.priority,
            "podSets": [{"name": "main", "count": 1, "template": {"spec": {"nodeSelector": selector}}}],
        },
        "status": {
            "admission": {
                "clusterQueue": f"queue-{job.queue}",
                "podSetAssignments": [{"name": "main", "count": 1, "resourceUsage": usage}],
            },
            "conditions": [{"type": "QuotaReserved", "status": "True", "lastTransitionTime": reserved}],
        },
    }
