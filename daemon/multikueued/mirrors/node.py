"""The Node that stands for a worker, and its Lease. Pure.

Each field has its reason, and its row in a test. What is left out matters as much: a label `kubernetes.io/os` brings
DaemonSets, `kubernetes.io/hostname` makes the spread constraints of other people's pods count an empty node.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

import attrs

from multikueue.core.machinery.lease import micro_time
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import annotations_of, labels_of
from multikueue.kube import KubeClient
from multikueue.protocols import ApiClient
from multikueued.mirror_names import VIRTUAL_KUBELET, WORKER, node_name, worker_label
from multikueued.settings.sections import MirrorPodSettings
from multikueued.workers.addresses import is_loopback

NODE: Final = Resource(GVK("", "v1", "Node"), "nodes", namespaced=False)
LEASES: Final = "kube-node-lease"
"""The namespace of the Leases of nodes."""
LEASE_SECONDS: Final = 40
"""After so long without a renewal a node counts as gone: the default of kubelets."""
REACHABLE: Final = "multikueue.dev/WorkerReachable"
"""Condition of a Node, and of mirrors while it is False: whether we see what happens on the worker, and since when."""
LOOPBACK: Final = "127.0.0.1"
SANDBOX: Final = "-sandbox"
"""The end of the version of a sandbox's API server."""
TAINT: Final = {"key": "multikueue.dev/virtual-node", "value": "true", "effect": "NoSchedule"}
_EXCLUDED: Final = {"node.kubernetes.io/exclude-from-external-load-balancers": "true"}


@attrs.frozen
class Endpoint:
    """Where the API server reaches who answers as the kubelet of our nodes."""

    address: str
    """An IP address."""
    port: int


def address_of(settings: MirrorPodSettings, server: str, version: str) -> str:
    """Where the API server reaches who answers as the kubelet of our nodes.

    Args:
        settings: the daemon's.
        server: URL of the manager's API server.
        version: of that.

    Returns:
        What is set; else the loopback if that is a sandbox's server on this machine. A real one that is reached so may
        be in a container, as kind's, where the loopback is another one. Empty: nobody knows.
    """
    beside = is_loopback(urlsplit(server).hostname or "") and version.endswith(SANDBOX)
    return settings.address or (LOOPBACK if beside else "")


def server_of(client: ApiClient) -> str:
    """The URL of an API server; empty: it has none, as in tests."""
    return client.config.server if isinstance(client, KubeClient) else ""


def lease_key(worker: str) -> ObjectKey:
    """The Lease of a worker's Node."""
    return ObjectKey(LEASES, node_name(worker))


def node_body(worker: str) -> Json:
    """A worker's Node, as it is made: nothing is ever placed there."""
    labels = {**VIRTUAL_KUBELET, **_EXCLUDED, WORKER: worker_label(worker)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node_name(worker), "labels": labels, "annotations": {WORKER: worker}},
        "spec": {"unschedulable": True, "taints": [dict(TAINT)]},
    }


def is_ours(node: Json, worker: str) -> bool:
    """Whether a Node of that name is one that we have made for this worker: else it is left alone."""
    return labels_of(node).items() >= VIRTUAL_KUBELET.items() and annotations_of(node).get(WORKER) == worker


def node_status(endpoint: Endpoint, version: str, now: datetime, lost_since: datetime | None) -> Json:
    """The status of a Node, as a merge patch.

    Args:
        endpoint: see `Endpoint`.
        version: of the manager's API server, as `v1.36.3`: tools read the kubelet's.
        now: the wall clock.
        lost_since: since when the worker is out of reach; None: it is not.
    """
    return {
        "addresses": [{"type": "InternalIP", "address": endpoint.address}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": endpoint.port}},
        "allocatable": {"pods": "0"},
        "capacity": None,  # rules of monitoring divide by it; a Node that an earlier version made has one
        "nodeInfo": {
            "kubeletVersion": version,
            "operatingSystem": "linux",
            **dict.fromkeys(_UNKNOWN, ""),
        },
        # Also while the worker is away: a cloud deletes a NotReady node that it does not know.
        "conditions": [
            _condition("Ready", now, now, reason="MultiKueueRuns", message="multikueue shows pods of a worker"),
            reachable(lost_since, now),
        ],
    }


_UNKNOWN: Final = (
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "machineID",
    "osImage",
    "systemUUID",
)


def reachable(lost_since: datetime | None, now: datetime) -> Json:
    """The condition `REACHABLE` of a Node."""
    if lost_since is None:
        return _condition(REACHABLE, now, now, reason="Connected", message="The worker cluster is connected")
    return unreachable(lost_since) | {"lastHeartbeatTime": timestamp(now)}


def unreachable(lost_since: datetime) -> Json:
    """The condition `REACHABLE` of a mirror whose worker is out of reach."""
    return {
        "type": REACHABLE,
        "status": "False",
        "reason": "WorkerLost",
        "message": "The worker cluster is out of reach: what is shown is what was seen last",
        "lastTransitionTime": timestamp(lost_since),
    }


def lease_body(worker: str, node_uid: str, now: datetime) -> Json:
    """The Lease of a worker's Node; it goes with the Node."""
    key = lease_key(worker)
    owner = {"apiVersion": "v1", "kind": "Node", "name": key.name, "uid": node_uid}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": key.namespace, "name": key.name, "ownerReferences": [owner]},
        "spec": {"holderIdentity": key.name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": micro_time(now)},
    }


def renewal(now: datetime) -> Json:
    """The patch that renews a Lease."""
    return {"spec": {"renewTime": micro_time(now)}}


def _condition(kind: str, heartbeat: datetime, since: datetime, *, reason: str, message: str) -> Json:
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": timestamp(heartbeat),
        "lastTransitionTime": timestamp(since),
    }
