"""Workloads that run already when a benchmark begins, as Kueue's own MultiKueue would have left them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import anyio
import attrs

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.labels import ADMISSION_MANAGER, ORIGIN_LABEL, PREBUILT_WORKLOAD, QUEUE_LABEL
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import uid
from multikueue.core.model.status_apply import admission_status
from multikueue.core.model.workload_names import workload_name
from multikueue.errors import Invalid
from multikueue.kube import KubeClient
from multikueue.sandbox.setting_up import CHECK, CLUSTER_QUEUE_NAME, LOCAL_QUEUE_NAME
from tests.benchmarks import objects
from tests.benchmarks.acting import admitted, now
from tests.benchmarks.planes import Plane

PREFIX: Final = "running"
_AT_A_TIME: Final = 64
_ORIGIN: Final = "multikueue"


@attrs.frozen(eq=False)
class Preload:
    """Creates jobs that run on workers in turn."""

    manager: KubeClient
    workers: Mapping[str, KubeClient]
    planes: Sequence[Plane]
    """The manager's and the workers', in their order."""

    async def create(self, count: int) -> None:
        """Create that many, each with its Workload, on the manager and on one worker.

        The first of each worker by requests, as Kueue and its MultiKueue do it; the others are copies of these where
        the API servers are the sandbox's.
        """
        first = range(min(count, len(self.workers)))
        await self._create(first)
        copied = [await self._copied(number, range(number, count, len(self.workers))) for number in first]
        if not all(copied):
            await self._create(range(len(first), count))

    async def _copied(self, first: int, numbers: Sequence[int]) -> bool:
        """Have the manager and a worker store what runs there under other numbers; return whether they can."""
        name = objects.job(first, PREFIX)["metadata"]["name"]
        job = await self.manager.get(JOB, ObjectKey(objects.NAMESPACE, name))
        texts = [_texts(name, uid(job)), *map(_texts_of_copy, numbers[1:])]
        manager, *workers = self.planes
        return all([await plane.copy(texts) for plane in (manager, workers[first])])

    async def _create(self, numbers: Iterable[int]) -> None:
        left = iter(numbers)
        async with anyio.create_task_group() as tasks:
            for _ in range(_AT_A_TIME):
                tasks.start_soon(self._some, left)

    async def _some(self, numbers: Iterator[int]) -> None:
        names = list(self.workers)
        for number in numbers:
            await self._one(number, names[number % len(names)])

    async def _one(self, number: int, worker: str) -> None:
        job = objects.job(number, PREFIX)
        job["spec"]["suspend"] = False
        stored = await self.manager.create(JOB, job)
        await _run(self.manager, stored)
        workload = objects.workload_of(stored)
        await self._admit(await self.manager.create(WORKLOAD, workload), worker)
        await _copy(self.workers[worker], job, workload)

    async def _admit(self, workload: Json, worker: str) -> None:
        ready = {
            "name": CHECK,
            "state": "Ready",
            "message": f'The workload was admitted on "{worker}"',
            "lastTransitionTime": timestamp(now()),
        }
        status = {**admitted(workload, CLUSTER_QUEUE_NAME), "admissionChecks": [ready], "clusterName": worker}
        try:
            await _apply(self.manager, workload, status)
        except Invalid:  # the sandbox has Kueue's webhook's rule: only what was nominated may become `clusterName`
            workload = await _apply(self.manager, workload, {"nominatedClusterNames": [worker]})
            await _apply(self.manager, workload, {**status, "nominatedClusterNames": None})


def _texts(name: str, job_uid: str) -> tuple[str, str, str]:
    """What of a job and its Workload is their own: the Workload's name, which has the job's in it, and the job's."""
    return workload_name(JOB.gvk, name, job_uid), name, job_uid


def _texts_of_copy(number: int) -> tuple[str, str, str]:
    return _texts(objects.job(number, PREFIX)["metadata"]["name"], str(uuid.uuid5(uuid.NAMESPACE_OID, str(number))))


async def _apply(client: KubeClient, workload: Json, changes: Json) -> Json:
    body = admission_status(workload, changes)
    return await client.apply(WORKLOAD, body, field_manager=ADMISSION_MANAGER, subresource="status")


async def _copy(client: KubeClient, job: Json, workload: Json) -> None:
    name, namespace = workload["metadata"]["name"], workload["metadata"]["namespace"]
    metadata = {"name": name, "namespace": namespace, "labels": {ORIGIN_LABEL: _ORIGIN}}
    stored = await client.create(WORKLOAD, {**workload, "metadata": metadata})
    patch = {"status": admitted(stored, CLUSTER_QUEUE_NAME)}
    await client.merge_patch(WORKLOAD, ObjectKey(namespace, name), patch, subresource="status")
    labels = {ORIGIN_LABEL: _ORIGIN, PREBUILT_WORKLOAD: name, QUEUE_LABEL: LOCAL_QUEUE_NAME}
    spec = {field: value for field, value in job["spec"].items() if field != "managedBy"}
    metadata = {"name": job["metadata"]["name"], "namespace": namespace, "labels": labels}
    await _run(client, await client.create(JOB, {**job, "metadata": metadata, "spec": spec}))


async def _run(client: KubeClient, job: Json) -> None:
    status = {"startTime": _STARTED, "active": 1, "ready": 1}
    await client.merge_patch(JOB, ObjectKey.of(job), {"status": status}, subresource="status")


_STARTED: Final = timestamp(now())
"""The same on the manager and on the worker, so that no status is to be brought home."""
