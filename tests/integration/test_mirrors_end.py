"""What ends of mirrors while no daemon runs: a real server's own controllers take it away."""

from __future__ import annotations

import anyio
import pytest

from multikueue.core.model.kinds import JOB, NAMESPACE, POD
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import dig
from multikueue.kube import KubeClient
from multikueue.protocols import read
from multikueue.testing import job
from multikueued.mirrors.mirror import mirror_body, mirror_status
from multikueued.mirrors.node import NODE, node_body
from multikueued.mirrors.removing import take_away
from multikueued.rbac.mirrors import mirror_policy_objects, mirroring_rules, node_lease_rules
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.interface import ClusterFactory
from tests.controlplane.polling import poll_until
from tests.integration.planes import connection
from tests.mirrors.objects import run, shown, worker_pod

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]


async def test_a_namespace_or_a_job_that_is_deleted_waits_for_nobody(clusters: ClusterFactory) -> None:
    """Grace 0 and no finalizer: with 30 s a namespace hung in Terminating. The policy stops no garbage collector."""
    rights = [*mirroring_rules("mirrors"), *node_lease_rules()]
    async with (
        clusters("manager", users={"daemon": rights}, controller_manager=True) as plane,
        KubeClient(connection(plane.kubeconfig("admin")), name="manager") as admin,
        KubeClient(connection(plane.kubeconfig("daemon")), name="manager") as client,
    ):
        for obj in mirror_policy_objects("mirrors", "daemon"):
            await plane.admin.apply(obj)
        await client.create(NODE, node_body("worker1"))
        for namespace in ("team-a", "team-b"):
            await admin.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
            await plane.admin.apply(
                {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": namespace, "name": "default"}}
            )
        keys = {namespace: await _mirrored(admin, client, namespace) for namespace in ("team-a", "team-b")}
        await admin.delete(NAMESPACE, ObjectKey("", "team-a"))
        await admin.delete(JOB, ObjectKey("team-b", "train"), propagation="Background")
        for resource, key in ((POD, keys["team-b"]), (POD, keys["team-a"]), (NAMESPACE, ObjectKey("", "team-a"))):
            await _gone(admin, resource, key)


async def test_what_the_pod_garbage_collector_takes_and_what_is_left_for_it() -> None:
    """Ended pods beyond its threshold, oldest first; and, once mirrors are off and their Node is gone, pods of others
    there, which have ended by then. It looks every 20 s, and at its start: it is started when there is something."""
    collector = ("--controllers=pod-garbage-collector-controller", "--terminated-pod-gc-threshold=1")
    rights = [*mirroring_rules("mirrors"), *node_lease_rules()]
    async with (
        ControlPlane("manager", users={"daemon": rights}) as plane,
        KubeClient(connection(plane.kubeconfig("admin")), name="manager") as admin,
        KubeClient(connection(plane.kubeconfig("daemon")), name="manager") as client,
    ):
        mirrors = await _two_that_ended_and_pods_of_others(plane, admin, client)
        async with plane.controllers(*collector):
            await _gone(admin, POD, mirrors[0])
        assert await read(admin, POD, mirrors[1]) is not None
        await admin.delete(POD, ObjectKey("default", "going"))
        await take_away(client, "multikueue")
        theirs = await admin.get(POD, ObjectKey("default", "theirs"))
        assert (dig(theirs, "status", "phase"), dig(theirs, "status", "reason")) == ("Failed", "NotDelegated")
        for resource, key in (
            (POD, mirrors[1]),
            (NODE, ObjectKey("", "multikueue-worker1")),
            (POD, ObjectKey("default", "going")),
        ):
            assert await read(admin, resource, key) is None
        async with plane.controllers(*collector):
            await _gone(admin, POD, ObjectKey("default", "theirs"))


async def _two_that_ended_and_pods_of_others(
    plane: ControlPlane, admin: KubeClient, client: KubeClient
) -> list[ObjectKey]:
    """Two mirrors, the older one first; beside them the pods `theirs` and `going`."""
    await admin.create(NODE, node_body("worker1"))
    for name in ("default", "team-a", "team-b"):
        if name != "default":
            await admin.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        account = {"namespace": name, "name": "default"}
        await plane.admin.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    for name in ("theirs", "going"):
        await admin.create(POD, _theirs(name))
    for obj in mirror_policy_objects("mirrors", "daemon"):
        await plane.admin.apply(obj)
    mirrors = list[ObjectKey]()
    for namespace in ("team-a", "team-b"):
        mirrors.append(await _mirrored(admin, client, namespace))
        await client.merge_patch(POD, mirrors[-1], {"status": {"phase": "Succeeded"}}, subresource="status")
        await anyio.sleep(1.1)  # creation times are whole seconds, by which it tells the oldest
    return mirrors


def _theirs(name: str) -> Json:
    """A pod of somebody else on a node of ours."""
    spec: Json = {"nodeName": "multikueue-worker1", "containers": [{"name": "c", "image": "i"}]}
    metadata = {"namespace": "default", "name": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


async def _mirrored(admin: KubeClient, client: KubeClient, namespace: str) -> ObjectKey:
    """A mirror that runs, of a job of this namespace."""
    made = job("train", namespace=namespace)
    made["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue"
    owner = await admin.create(JOB, made)
    pod = shown(worker_pod())
    body: Json = mirror_body(pod, run(owner), "multikueue")
    body["metadata"]["namespace"] = namespace
    mirror = await client.create(POD, body)
    await client.merge_patch(POD, ObjectKey.of(mirror), {"status": mirror_status(pod)}, subresource="status")
    return ObjectKey.of(mirror)


async def _gone(admin: KubeClient, resource: Resource, key: ObjectKey) -> None:
    async def is_gone() -> bool:
        return await read(admin, resource, key) is None

    await poll_until(is_gone, seconds=90, otherwise=f"{key} is still there")
