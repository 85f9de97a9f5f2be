"""No test has to know what ran before it: it finds the servers as the first one did."""

from __future__ import annotations

import pytest

from multikueue.core.model.kinds import JOB, LOCAL_QUEUE, MUTATING_WEBHOOKS, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import with_value
from multikueue.kube import KubeClient
from multikueue.sandbox.kinds import BATCH_JOB
from multikueue.sandbox.kueue.building import build_workload
from multikueue.sandbox.setting_up import CHECK, connect_workers, local_queue, set_up_queues
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import poll_until
from tests.integration.clearing import EMPTIED, as_at_first, objects
from tests.integration.fleet import QUOTA, job
from tests.integration.planes import WORKER_USER, Planes, connection
from tests.integration.view import NAMESPACE, POD

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]

_REFUSES: Json = {
    "apiVersion": MUTATING_WEBHOOKS.gvk.api_version,
    "kind": MUTATING_WEBHOOKS.gvk.kind,
    "metadata": {"name": "nobody-answers"},
    "webhooks": [
        {
            "name": "nobody.multikueue.dev",
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [{"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]}],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
        }
    ],
}


def admin(plane: Cluster) -> KubeClient:
    """A client that may do everything."""
    return KubeClient(connection(plane.kubeconfig()), name=plane.name)


async def found_on(plane: Cluster) -> list[str]:
    """All that tests might have made."""
    async with admin(plane) as client:
        return [f"{kind.plural} {ObjectKey.of(obj)}" for kind in EMPTIED for obj in await objects(client, kind)]


async def leave_things_on(plane: Cluster) -> None:
    """A Job that runs, another queue, and a Workload that is being deleted and nobody lets go."""
    async with admin(plane) as client:
        await client.create(LOCAL_QUEUE, {**local_queue(), "metadata": {"name": "taken", "namespace": NAMESPACE}})
        made = await client.create(JOB, job("meanwhile", managed_by=None, queue=None))
        workload = with_value(build_workload(BATCH_JOB, made, 0), ("spec", "queueName"), "taken")
        await client.create(WORKLOAD, workload)
        await client.delete(WORKLOAD, ObjectKey.of(workload))

        async def has_a_pod() -> bool:
            return bool(await objects(client, POD))

        await poll_until(has_a_pod, seconds=20, otherwise="the Job has no pod")


async def test_whatever_was_left_is_gone(planes: Planes) -> None:
    """Jobs, their pods and Workloads, queues, credentials and webhooks."""
    async with admin(planes.manager) as client:
        await set_up_queues(client, QUOTA, [CHECK])
        await connect_workers(client, planes.worker_kubeconfigs())
    for plane in planes.all:
        await leave_things_on(plane)
    await planes.manager.admin.apply(_REFUSES)
    assert all([await found_on(plane) for plane in planes.all])

    await as_at_first(planes)
    # The chart's Secret for the key of marks is made again, empty.
    assert [await found_on(plane) for plane in planes.all] == [["secrets kueue-system/multikueue-marks"], [], []]


async def test_whatever_was_broken_is_well_again(planes: Planes) -> None:
    """An API server that is dead, one that hangs, and users that have lost what they may do, or their token."""
    worker1, worker2 = planes.workers.values()
    await worker1.grant(WORKER_USER, [])
    await worker2.revoke(WORKER_USER)
    await worker1.kill_apiserver()
    await worker2.pause_apiserver()

    await as_at_first(planes)
    assert sorted(planes.worker_kubeconfigs()) == ["worker1", "worker2"]
    for worker in (worker1, worker2):
        async with KubeClient(connection(worker.kubeconfig(WORKER_USER)), name=worker.name) as client:
            await client.create(JOB, job("allowed"))
