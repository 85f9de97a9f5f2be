"""Every row against real API servers: what the sandbox's servers would let through, they may not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import orjson
import pytest

from multikueue.adapters import AVAILABLE
from multikueue.adapters.pod import PODS
from multikueue.core.model.names import Json, ObjectKey
from multikueue.kube import KubeClient, parse_worker_kubeconfig
from multikueue.protocols import ApiClient
from tests.adapters.kinds import AT, NOW, READY, SCHEDULED, a_job, row
from tests.adapters.trials import (
    BUILT_IN,
    KEY,
    NAMESPACE,
    a_worker_takes_the_copy,
    definition,
    the_manager_takes_the_status,
)
from tests.controlplane.interface import Cluster, ClusterFactory, together

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

ACCOUNT: Json = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "team"}}
POD = row("Pod")


@asynccontextmanager
async def pair(clusters: ClusterFactory) -> AsyncIterator[tuple[ApiClient, ApiClient]]:
    """A manager and a worker that serve all kinds; without controllers, nothing else writes."""
    crds = [definition(kind) for kind in AVAILABLE if kind.resource.gvk.group not in BUILT_IN]
    manager, worker = clusters("manager", crds=crds), clusters("worker", crds=crds)
    async with together(manager, worker), AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(_client(cluster)) for cluster in (manager, worker)]
        for cluster in (manager, worker):
            for obj in (NAMESPACE, ACCOUNT):
                await cluster.admin.apply(obj)
        yield clients[0], clients[1]


def _client(cluster: Cluster) -> KubeClient:
    return KubeClient(parse_worker_kubeconfig(orjson.dumps(cluster.kubeconfig())), name=cluster.name)


async def test_every_kind_is_taken_as_it_is_sent(clusters: ClusterFactory) -> None:
    """Copies by the worker, statuses by the manager."""
    async with pair(clusters) as (manager, worker):
        for kind in AVAILABLE:
            await a_worker_takes_the_copy(manager, worker, kind)
            await the_manager_takes_the_status(manager, kind, await manager.get(kind.resource, KEY))


def container(state: Json) -> Json:
    """The status of the pod's only container."""
    shown = {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 0}
    return {**shown, "state": state, "lastState": {}}


async def test_a_pod_may_run_be_stopped_and_run_again(clusters: ClusterFactory) -> None:
    """Its status goes back and forth on the manager, where it never runs; API servers have rules against some of it."""
    running, ended = container({"running": {"startedAt": AT}}), container({"terminated": {"exitCode": 0}})
    waiting = container({"waiting": {"reason": "ContainerCreating"}})
    steps: list[Json] = [
        {"phase": "Pending", "containerStatuses": [waiting], "conditions": [SCHEDULED]},
        {"phase": "Running", "containerStatuses": [running], "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]},
        {"phase": "Running", "containerStatuses": [ended], "startTime": AT, "conditions": [SCHEDULED, READY]},
        {"phase": "Pending", "containerStatuses": [waiting], "conditions": [SCHEDULED]},
        {"phase": "Succeeded", "containerStatuses": [ended], "message": "done"},
    ]
    async with pair(clusters) as (manager, _):
        gated = a_job(POD)
        gated["metadata"] = {"name": "gated", "namespace": "team", "labels": {"app": "x"}}
        gated["spec"] = {
            field: value
            for field, value in gated["spec"].items()
            if field not in ("priority", "preemptionPolicy", "priorityClassName")
        }
        local = await manager.create(PODS, gated)
        key = ObjectKey.of(local)

        async def write(patch: Json | None) -> Json:
            assert patch is not None
            return await manager.merge_patch(PODS, key, patch, subresource="status")

        for status in steps:
            remote = a_job(POD, {**status, "qosClass": "BestEffort"})
            for _ in range(3):  # containers of an earlier run are forgotten in a first step
                patch = POD.status_patch(local, remote, NOW)
                local = local if patch is None else await write(patch)
            assert POD.status_patch(local, remote, NOW) is None
            assert local["status"]["phase"] == status["phase"]
            (shown,), (said,) = (pod_status["containerStatuses"] for pod_status in (local["status"], status))
            assert set(shown["state"]) == set(said["state"])
            if status["phase"] == "Running" and "startTime" not in status:
                local = await write(POD.release_patch(local))
                assert local["status"]["phase"] == "Pending"
                assert "containerStatuses" not in local["status"]
                assert POD.release_patch(local) is None
