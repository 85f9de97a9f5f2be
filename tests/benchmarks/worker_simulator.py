"""`python -m tests.benchmarks.worker_simulator`: Kueue and the job controllers of all workers, without any delay.

Every copy is admitted as it arrives, but those of `objects.ATTACKER`, for which there is no
quota. A job is unsuspended, runs, changes its status as often as wanted, and ends. With pods they are made as its
controller and Kueue make them, run and end with it, and go when it goes.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import anyio
import anyio.abc
import attrs

from multikueue.core.model.conditions import conditions, timestamp, updated
from multikueue.core.model.copies import prebuilt_workload
from multikueue.core.model.kinds import JOB, POD, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import has_quota
from multikueue.errors import AlreadyExists
from multikueue.kube import Informer, KubeClient
from multikueue.sandbox.setting_up import CLUSTER_QUEUE_NAME
from tests.benchmarks import objects
from tests.benchmarks.acting import Acts, admitted, client, condition, follow, now
from tests.benchmarks.answering import Answer, nothing_to_ask, run


@attrs.frozen
class Life:
    """What becomes of jobs."""

    changes: int
    """Status changes between start and end."""
    interval: float
    """Seconds between them."""
    finish: bool
    """Whether jobs end at all."""
    pods: int
    """How many each has."""


@attrs.define(eq=False)
class Worker:
    """One worker's simulator."""

    connection: KubeClient
    acts: Acts
    life: Life
    workloads: Informer | None = None

    async def start(self, tasks: anyio.abc.TaskGroup) -> None:
        """Begin to follow; returns once everything that was there is known."""
        self.workloads = await follow(tasks, self.connection, WORKLOAD, self._workload)
        await follow(tasks, self.connection, JOB, self._job, self._job_gone)

    def _workload(self, key: ObjectKey, workload: Json) -> None:
        if not has_quota(workload) and key.namespace != objects.ATTACKER:
            name = ("admit", workload["metadata"]["uid"])
            self.acts.once(name, functools.partial(self._admit, key, workload))

    def _job(self, key: ObjectKey, job: Json) -> None:
        preloaded = not self.life.finish and dig(job, "status", "active")
        if prebuilt_workload(job) and not preloaded and not dig(job, "status", "completionTime"):
            name = ("live", job["metadata"]["uid"])
            self.acts.once(name, functools.partial(self._live, key, job))

    def _job_gone(self, key: ObjectKey, job: Json) -> None:
        if prebuilt_workload(job):
            for name in self._pods(key):
                self.acts.once(("remove", name), functools.partial(self._remove, name))

    async def _remove(self, pod: ObjectKey) -> None:
        await self.connection.delete(POD, pod, grace=0)

    def _pods(self, job: ObjectKey) -> list[ObjectKey]:
        return [ObjectKey(job.namespace, f"{job.name}-{number}") for number in range(self.life.pods)]

    async def _admit(self, key: ObjectKey, workload: Json) -> None:
        patch = {"status": admitted(workload, CLUSTER_QUEUE_NAME)}
        await self.connection.merge_patch(WORKLOAD, key, patch, subresource="status")

    async def _live(self, key: ObjectKey, job: Json) -> None:
        if dig(job, "spec", "suspend"):
            await self.connection.merge_patch(JOB, key, {"spec": {"suspend": False}})
        started = timestamp(now())
        for pod in self._pods(key):
            with suppress(AlreadyExists):
                await self.connection.create(POD, objects.pod_of(job, pod.name))
        await self._pods_say(key, "Running", "started")
        await self._status(key, {"startTime": started, "active": 1, "ready": 1})
        for number in range(self.life.changes):
            await anyio.sleep(self.life.interval)
            await self._status(key, {"ready": number % 2})
            await self._pods_say(key, "Running", f"step {number}")
        if not self.life.finish:
            return
        ended = timestamp(now())
        await self._pods_say(key, "Succeeded", "ended")
        reasons = {
            "status": "True",
            "lastProbeTime": ended,
            "lastTransitionTime": ended,
            "reason": "CompletionsReached",
        }
        done = [{"type": kind, **reasons} for kind in ("SuccessCriteriaMet", "Complete")]
        counters = {"active": 0, "ready": 0, "succeeded": 1, "terminating": 0}
        await self._status(key, {"startTime": started, "completionTime": ended, "conditions": done, **counters})
        await self._finish(ObjectKey(key.namespace, prebuilt_workload(job)))

    async def _pods_say(self, job: ObjectKey, phase: str, message: str) -> None:
        patch = {"status": {"phase": phase, "message": message}}
        for pod in self._pods(job):
            await self.connection.merge_patch(POD, pod, patch, subresource="status")

    async def _status(self, key: ObjectKey, status: Json) -> None:
        await self.connection.merge_patch(JOB, key, {"status": status}, subresource="status")

    async def _finish(self, key: ObjectKey) -> None:
        workload = self.workloads.get(key) if self.workloads is not None else None
        if workload is not None:
            done = condition(workload, "Finished", "Succeeded", "Reached expected number of succeeded pods")
            patch = {"status": {"conditions": updated(conditions(workload), done)}}
            await self.connection.merge_patch(WORKLOAD, key, patch, subresource="status")


@asynccontextmanager
async def worker_simulator(config: Json) -> AsyncIterator[tuple[Json, Answer]]:
    """Play all workers of `config["kubeconfigs"]`."""
    life = Life(config["changes"], config["interval"], config["finish"], config["pods"])
    async with AsyncExitStack() as stack:
        connections = [
            await stack.enter_async_context(client(name, kubeconfig))
            for name, kubeconfig in config["kubeconfigs"].items()
        ]
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        for connection in connections:
            await Worker(connection, Acts(tasks), life).start(tasks)
        yield {}, nothing_to_ask


if __name__ == "__main__":
    run(worker_simulator)
