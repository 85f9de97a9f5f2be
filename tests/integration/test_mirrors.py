"""What mirrors are made of, as a real kube-apiserver takes it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from multikueue.core.model.kinds import JOB, LEASE, NAMESPACE, POD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, uid
from multikueue.errors import Conflict, NotFound
from multikueue.kube import KubeClient
from multikueue.testing import job
from multikueued.mirror_names import MIRROR, PROOF
from multikueued.mirrors.foreign import end_foreign
from multikueued.mirrors.mirror import comparable, mirror_body, mirror_status
from multikueued.mirrors.node import NODE, Endpoint, lease_body, lease_key, node_body, node_status, renewal
from multikueued.mirrors.part import server_version
from multikueued.rbac.mirrors import mirror_policy_objects, mirroring_rules, node_lease_rules
from tests.controlplane.interface import ClusterFactory
from tests.integration.planes import connection
from tests.mirrors.objects import run, shown, worker_pod

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]

NOW = datetime(2026, 11, 28, 10, 0, tzinfo=UTC)


async def test_the_bodies_are_taken(clusters: ClusterFactory) -> None:
    """From the daemon's account, with the rights that it has and under its policy."""
    rights = [*mirroring_rules("mirrors"), *node_lease_rules()]
    async with (
        clusters("manager", users={"daemon": rights}) as plane,
        KubeClient(connection(plane.kubeconfig("admin")), name="manager") as admin,
        KubeClient(connection(plane.kubeconfig("daemon")), name="manager") as client,
    ):
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a", "labels": labels}}
        await admin.create(NAMESPACE, namespace)
        for place in ("team-a", "default"):
            named = {"namespace": place, "name": "default"}
            await plane.admin.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named})
        await _pods_of_others(admin)
        for obj in mirror_policy_objects("mirrors", "daemon"):
            await plane.admin.apply(obj)
        await _node(client)
        await _mirror(admin, client)
        await _foreign(admin, client)


async def _node(client: KubeClient) -> None:
    node = await client.create(NODE, node_body("worker1"))
    status = node_status(Endpoint("10.0.0.7", 10260), await server_version(client), NOW, NOW)
    patch = {"metadata": {"uid": uid(node)}, "status": status}
    stored = await client.merge_patch(NODE, ObjectKey("", "multikueue-worker1"), patch, subresource="status")
    assert stored["status"]["nodeInfo"]["kubeletVersion"].startswith("v1.")
    assert stored["status"]["allocatable"] == {"pods": "0"}
    assert {taint["key"] for taint in stored["spec"]["taints"]} >= {"multikueue.dev/virtual-node"}
    await client.create(LEASE, lease_body("worker1", uid(node), NOW))
    await client.merge_patch(LEASE, lease_key("worker1"), renewal(NOW))


async def _mirror(admin: KubeClient, client: KubeClient) -> None:
    made = job("train", namespace="team-a")
    made["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue"
    owner = await admin.create(JOB, made)
    pod = shown()
    mirror = await client.create(POD, mirror_body(pod, run(owner), "multikueue"))
    key, wanted = ObjectKey.of(mirror), mirror_status(pod)
    patch: Json = {"metadata": {"uid": uid(mirror), "annotations": {PROOF: "p"}}, "status": wanted}
    stored = await client.merge_patch(POD, key, patch, subresource="status")
    assert annotations_of(stored)[PROOF] == "p", "one request is enough for the proof and the status"
    assert comparable(stored) == wanted, "else each look would write it once more"
    other = {"metadata": {"uid": "another"}, "status": {"phase": "Failed"}}
    with pytest.raises(Conflict):
        await client.merge_patch(POD, key, other, subresource="status")
    lost = {"status": mirror_status(stored, NOW)}
    stored = await client.merge_patch(POD, key, lost, subresource="status")
    assert [condition["type"] for condition in dig(stored, "status", "conditions")] == [
        "Ready",
        "multikueue.dev/WorkerReachable",
    ]
    ended = worker_pod(phase="Succeeded")
    state = {"exitCode": 0, "reason": "Completed", "startedAt": None, "finishedAt": "2026-11-28T10:00:05Z"}
    ended["status"]["containerStatuses"][0] |= {"ready": False, "started": False, "state": {"terminated": state}}
    await client.merge_patch(POD, key, {"status": mirror_status(ended)}, subresource="status")
    await client.delete(POD, key, uid=uid(mirror))
    with pytest.raises(NotFound):
        await admin.get(POD, key)


async def _pods_of_others(admin: KubeClient) -> None:
    """On a node of ours, before the policy keeps them away."""
    for name, labels in (("theirs", {}), ("going", {}), ("mirror", {MIRROR: "multikueue"})):
        metadata: Json = {"namespace": "default", "name": name, "labels": labels}
        spec: Json = {"nodeName": "multikueue-worker1", "containers": [{"name": "c", "image": "i"}]}
        spec |= {"automountServiceAccountToken": False}
        await admin.create(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


async def _foreign(admin: KubeClient, client: KubeClient) -> None:
    """They end, and one that is deleted does not hang; mirrors are left alone."""
    going = ObjectKey("default", "going")
    assert await admin.delete(POD, going) is not None, "it waits for a kubelet"
    await end_foreign(client, "worker1", "multikueue")
    theirs, mirror = [await admin.get(POD, ObjectKey("default", name)) for name in ("theirs", "mirror")]
    assert (dig(theirs, "status", "phase"), dig(theirs, "status", "reason")) == ("Failed", "NotDelegated")
    assert dig(mirror, "status", "phase") == "Pending"
    with pytest.raises(NotFound):
        await admin.get(POD, going)
