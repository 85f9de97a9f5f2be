"""A fleet on real servers: queues, a small Kueue for each cluster, kubelets, our daemon, and what a user can see."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import anyio
import attrs

from multikueue.core.model.conditions import condition, is_true
from multikueue.core.model.kinds import CLUSTER_QUEUE, JOB, MULTIKUEUE_CLUSTER, SECRET, WORKLOAD
from multikueue.core.model.labels import CONTROLLER_NAME, ORIGIN_LABEL, QUEUE_LABEL
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import cluster_name
from multikueue.kube import KubeClient
from multikueue.sandbox.kueue import SmallKueue
from multikueue.sandbox.setting_up import (
    CHECK,
    CLUSTER_QUEUE_NAME,
    KUEUE_NAMESPACE,
    LOCAL_QUEUE_NAME,
    connect_workers,
    kubeconfig_secret,
    set_up_queues,
)
from multikueued.settings.config import Settings
from tests.integration.daemon import SETTINGS, Daemon
from tests.integration.kubelet import Kubelet
from tests.integration.planes import Planes, connection
from tests.integration.view import NAMESPACE, POD, Changes, View, job_of

QUOTA = {"cpu": "8", "memory": "16Gi"}
TWICE = {"cpu": "16", "memory": "32Gi"}


@attrs.frozen(eq=False)
class Fleet:
    """What a test does with a fleet, and sees of it."""

    manager: View
    workers: Mapping[str, View]
    kubelet: Kubelet
    daemon: Daemon
    changes: Changes

    async def submit(self, name: str, *, managed_by: str | None = CONTROLLER_NAME) -> None:
        """Create a Job on the manager, as a user would."""
        await self.manager.client.create(JOB, job(name, managed_by=managed_by))

    async def delete(self, name: str) -> None:
        """Delete a Job on the manager, as `kubectl delete` does."""
        await self.manager.client.delete(JOB, ObjectKey(NAMESPACE, name), propagation="Background")

    async def hold(self, worker: str, *, on: bool) -> None:
        """Let a worker's queue admit nothing, or again everything."""
        patch = {"spec": {"stopPolicy": "Hold" if on else "None"}}
        client = self.workers[worker].client
        await client.merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), patch)

    async def rotate(self, worker: str, kubeconfig: Json) -> None:
        """Put a new kubeconfig into the worker's Secret."""
        secret = kubeconfig_secret(worker, kubeconfig)
        key = ObjectKey(KUEUE_NAMESPACE, secret["metadata"]["name"])
        await self.manager.client.merge_patch(SECRET, key, {"data": secret["data"]})

    async def running(self, name: str) -> str:
        """Wait until the manager shows that a Job's pod runs; return the worker's name."""

        def look() -> str | None:
            workload, job = self.manager.workload_of(name), self.manager.get(JOB, name)
            runs = job is not None and dig(job, "status", "ready") == 1
            return cluster_name(workload) if runs and workload is not None else None

        return await self.changes.until(look, otherwise=lambda: f"Job {name} does not run: {self.story(name)}")

    async def run(self, name: str) -> str:
        """Submit a Job, wait until its pod runs, and return the worker's name."""
        await self.submit(name)
        return await self.running(name)

    async def finish(self, name: str) -> Json:
        """Let a Job's pod succeed, and wait until the Job has ended; see `ended`."""
        self.kubelet.end(name, "Succeeded")
        return await self.ended(name)

    async def ended(self, name: str, how: str = "Complete") -> Json:
        """Wait until a Job has that condition on the manager and its Workload is Finished; return the Job."""

        def look() -> Json | None:
            workload, job = self.manager.workload_of(name), self.manager.get(JOB, name)
            both = job is not None and workload is not None
            return job if both and is_true(job or {}, how) and is_true(workload or {}, "Finished") else None

        return await self.changes.until(look, otherwise=lambda: f"Job {name} is not {how}: {self.story(name)}")

    async def cleaned(self) -> None:
        """Wait until no copy of ours is left on any worker."""
        await self.changes.until(lambda: not self.copies(), otherwise=lambda: f"copies are left: {self.copies()}")

    async def active(self, worker: str, *, status: bool = True) -> Json:
        """Wait until the manager says that a worker is connected, or that it is not; return the condition."""

        def look() -> Json | None:
            active = condition(self.manager.get(MULTIKUEUE_CLUSTER, worker) or {}, "Active")
            return active if active is not None and active["status"] == str(status) else None

        return await self.changes.until(look, otherwise=f"MultiKueueCluster {worker} does not become Active={status}")

    def copies(self) -> list[str]:
        """What the workers have of ours, as `worker1 jobs.batch sample`."""
        return [
            f"{name} {resource} {obj['metadata']['name']}"
            for name, view in self.workers.items()
            for resource in (JOB, WORKLOAD)
            for obj in view.all(resource)
            if ORIGIN_LABEL in (obj["metadata"].get("labels") or {})
        ]

    def pods(self, worker: str, name: str) -> list[Json]:
        """The pods of a Job that are on a worker now."""
        return [pod for pod in self.workers[worker].all(POD) if job_of(pod) == name]

    def ran_on(self, name: str) -> list[str]:
        """The cluster of every pod a Job ever had: one entry for each."""
        views = {"manager": self.manager, **self.workers}
        return [cluster for cluster, view in views.items() for owner in view.pods_made.values() if owner == name]

    def status_on(self, worker: str, name: str) -> Json:
        """The last status that a worker showed of a Job."""
        status: Json = self.workers[worker].last[JOB, name].get("status") or {}
        return status

    def story(self, name: str) -> dict[str, Any]:
        """What there is to know when a test fails."""
        return {
            "job": dig(self.manager.get(JOB, name), "status"),
            "workload": dig(self.manager.workload_of(name), "status"),
            "clusters": [condition(cluster, "Active") for cluster in self.manager.all(MULTIKUEUE_CLUSTER)],
            "copies": self.copies(),
            "pods": {worker: [dig(pod, "status") for pod in view.all(POD)] for worker, view in self.workers.items()},
        }


def job(name: str, *, managed_by: str | None = CONTROLLER_NAME, queue: str | None = LOCAL_QUEUE_NAME) -> Json:
    """A Job of one pod, as a user writes it: suspended if it is for a queue, as Kueue's webhook would make it."""
    container = {
        "name": "main",
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"requests": {"cpu": "1", "memory": "64Mi"}},
    }
    spec: Json = {
        "suspend": queue is not None,
        "backoffLimit": 0,
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    }
    if managed_by is not None:
        spec["managedBy"] = managed_by
    labels = {} if queue is None else {QUEUE_LABEL: queue}
    metadata = {"name": name, "namespace": NAMESPACE, "labels": labels}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


@asynccontextmanager
async def fleet(
    planes: Planes,
    *,
    daemon: bool = True,
    settings: Settings = SETTINGS,
    pods_ready_timeout: timedelta | None = None,
) -> AsyncIterator[Fleet]:
    """Set up queues, connect the workers and start everything; what it leaves is cleared away before the next test.

    Args:
        planes: the control planes.
        daemon: whether our daemon is started at once.
        settings: our daemon's.
        pods_ready_timeout: of the workers' Kueues.
    """
    changes = Changes()
    async with AsyncExitStack() as stack:
        views = {
            plane.name: View(
                await stack.enter_async_context(KubeClient(connection(plane.kubeconfig()), name=plane.name)), changes
            )
            for plane in planes.all
        }
        manager = views["manager"]
        workers = {name: view for name, view in views.items() if name != "manager"}
        await set_up_queues(manager.client, TWICE, [CHECK])
        for view in workers.values():
            await set_up_queues(view.client, QUOTA)
        await connect_workers(manager.client, planes.worker_kubeconfigs())
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        for name, view in views.items():
            limit = pods_ready_timeout if name in workers else None
            await tasks.start(view.run)
            await tasks.start(SmallKueue(view.client, pods_ready_timeout=limit).run)
        kubelet = Kubelet(views, changes)
        tasks.start_soon(kubelet.run)
        ours = Daemon(connection(planes.daemon_kubeconfig), tasks, settings=settings)
        made = Fleet(manager, workers, kubelet, ours, changes)
        if daemon:
            made.daemon.start()
            await made.daemon.connected()
        yield made
