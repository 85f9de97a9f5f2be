"""`python -m tests.benchmarks.manager_simulator`: the manager's Kueue, without queueing and without any delay.

It makes a Workload for each job and reserves quota at once, admits it when its checks are Ready, starts the job, and
finishes the Workload when the job has ended; when the job is deleted, so is the Workload. It writes as Kueue does:
server-side apply of all it owns.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
import attrs

from multikueue.core.model.conditions import conditions, is_true, timestamp, updated
from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.labels import ADMISSION_MANAGER, QUEUE_LABEL
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import labels_of, resource_version, uid, version_of
from multikueue.core.model.status_apply import admission_status
from multikueue.core.model.workload_names import workload_name
from multikueue.core.model.workloads import CheckState, checks, has_quota, is_admitted, is_finished
from multikueue.errors import Conflict
from multikueue.kube import Informer, KubeClient
from multikueue.sandbox.setting_up import CHECK, CLUSTER_QUEUE_NAME
from tests.benchmarks.acting import Acts, admitted, client, condition, follow, now
from tests.benchmarks.answering import Answer, nothing_to_ask, run
from tests.benchmarks.objects import UNCHECKED, workload_of

_STALE_SECONDS, _LOOK = 30.0, 0.02


@attrs.define(eq=False)
class Manager:
    """The manager's simulator."""

    connection: KubeClient
    acts: Acts
    workloads: Informer | None = None
    _written: dict[ObjectKey, Json] = attrs.field(factory=dict, init=False)

    def job(self, key: ObjectKey, job: Json) -> None:
        """A job was made or has changed."""
        if is_true(job, "Complete") or is_true(job, "Failed"):
            workload = ObjectKey(key.namespace, workload_name(JOB.gvk, key.name, uid(job)))
            self.acts.once(("finish", workload), functools.partial(self._finish, workload))
        else:
            self.acts.once(("queue", uid(job)), functools.partial(self._queue, job))

    def workload(self, key: ObjectKey, workload: Json) -> None:
        """A Workload was made or has changed."""
        ready = checks(workload) and all(entry.get("state") == CheckState.READY for entry in checks(workload))
        if ready and has_quota(workload) and not is_admitted(workload):
            self.acts.once(("admit", uid(workload)), functools.partial(self._admit, key))

    def job_gone(self, key: ObjectKey, job: Json) -> None:
        """A job was deleted."""
        workload = ObjectKey(key.namespace, workload_name(JOB.gvk, key.name, uid(job)))
        self.acts.once(("remove", workload), functools.partial(self._remove, workload))

    async def _remove(self, key: ObjectKey) -> None:
        self._written.pop(key, None)
        await self.connection.delete(WORKLOAD, key)
        await self.connection.merge_patch(WORKLOAD, key, {"metadata": {"finalizers": None}})

    async def _queue(self, job: Json) -> None:
        key = ObjectKey(job["metadata"]["namespace"], workload_name(JOB.gvk, job["metadata"]["name"], uid(job)))
        workload = self._newest(key)
        if workload is None:
            workload = await self.connection.create(WORKLOAD, workload_of(job))
        if not has_quota(workload):
            pending = {"name": CHECK, "state": "Pending", "message": "", "lastTransitionTime": timestamp(now())}
            awaited = [] if labels_of(job).get(QUEUE_LABEL) == UNCHECKED else [pending]
            status = {**admitted(workload, CLUSTER_QUEUE_NAME, checks=True), "admissionChecks": awaited}
            await self._apply(workload, status)

    async def _admit(self, key: ObjectKey) -> None:
        workload = self._newest(key)
        if workload is None:
            return
        if not is_admitted(workload):
            done = condition(workload, "Admitted", "Admitted", "The workload is admitted")
            await self._apply(workload, {"conditions": updated(conditions(workload), done)})
        owner = workload["metadata"]["ownerReferences"][0]["name"]
        await self.connection.merge_patch(JOB, ObjectKey(key.namespace, owner), {"spec": {"suspend": False}})

    async def _finish(self, key: ObjectKey) -> None:
        workload = self._newest(key)
        if workload is not None and not is_finished(workload):
            done = condition(workload, "Finished", "Succeeded", "Reached expected number of succeeded pods")
            await self._apply(workload, {"conditions": updated(conditions(workload), done)})

    async def _apply(self, workload: Json, changes: Json) -> None:
        body = admission_status(workload, changes)
        try:
            written = await self.connection.apply(WORKLOAD, body, field_manager=ADMISSION_MANAGER, subresource="status")
            self._written[ObjectKey.of(workload)] = written
        except Conflict:
            await self._wait_for_newer(workload)  # to try again with what is known would be refused again
            raise

    def _newest(self, key: ObjectKey) -> Json | None:
        """The Workload as the watch or the answer to our last write has it, whichever is newer."""
        known = (self.workloads.get(key) if self.workloads is not None else None, self._written.get(key))
        return max((version for version in known if version is not None), key=version_of, default=None)

    async def _wait_for_newer(self, workload: Json) -> None:
        known, key = resource_version(workload), ObjectKey.of(workload)
        with anyio.move_on_after(_STALE_SECONDS):
            while True:
                newest = self._newest(key)
                if newest is None or resource_version(newest) != known:
                    return
                await anyio.sleep(_LOOK)


@asynccontextmanager
async def manager_simulator(config: Json) -> AsyncIterator[tuple[Json, Answer]]:
    """Play the Kueue of the cluster of `config["kubeconfig"]`."""
    async with AsyncExitStack() as stack:
        connection = await stack.enter_async_context(client("manager", config["kubeconfig"]))
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        manager = Manager(connection, Acts(tasks))
        manager.workloads = await follow(tasks, connection, WORKLOAD, manager.workload)
        await follow(tasks, connection, JOB, manager.job, manager.job_gone)
        yield {}, nothing_to_ask


if __name__ == "__main__":
    run(manager_simulator)
