"""Hundreds of planned Jobs on a manager and its workers, who upsets them, and what was seen of them."""

from __future__ import annotations

from typing import Final

import anyio
import anyio.abc
import attrs

from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, is_terminating, uid
from multikueue.core.model.workload_names import workload_name
from multikueue.kube import Informer, KubeClient
from multikueue.sandbox.kueue import evict
from tests.controlplane.interface import Cluster
from tests.integration.view import NAMESPACE, POD
from tests.kinds.ground import of_any_cluster
from tests.operators.load.lives import Lives, ran_twice
from tests.operators.load.plan import PODS, Plan
from tests.operators.playing.pods import Fate

_KINDS: Final = (JOB, WORKLOAD, POD)


@attrs.define(eq=False)
class LoadedCluster:
    """One cluster, as its administrator sees it."""

    plane: Cluster
    client: KubeClient
    last: dict[str, Json] = attrs.field(factory=dict, init=False)
    """The newest version of every Job there ever was, before it was deleted, by UID."""
    _informers: dict[Resource, Informer] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        def changed(_key: ObjectKey, _old: Json | None, new: Json | None) -> None:
            if new is not None and not is_terminating(new):
                self.last[uid(new)] = new

        self._informers = {
            JOB: Informer(self.client, JOB, on_change=changed),
            WORKLOAD: Informer(self.client, WORKLOAD),
        }

    def see(self, job: Json) -> None:
        """Take a Job as if a watch had shown it."""
        self._informers[JOB].put(ObjectKey.of(job), job)
        self.last[uid(job)] = job

    def get(self, resource: Resource, name: str) -> Json:
        """An object; empty if it is not there."""
        return self._informers[resource].get(ObjectKey(NAMESPACE, name)) or {}

    async def left(self) -> list[str]:
        """All there is of Jobs."""
        lists = {kind: await self.client.list(kind, namespace=NAMESPACE) for kind in _KINDS}
        return [f"{self.plane.name} {kind} {obj['metadata']['name']}" for kind in _KINDS for obj in lists[kind].items]

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Follow the cluster until cancelled; started once all there is has been seen."""
        async with anyio.create_task_group() as tasks:
            for informer in self._informers.values():
                tasks.start_soon(informer.run)
            for informer in self._informers.values():
                await informer.wait_synced()
            task_status.started()


@attrs.define(eq=False)
class World:
    """What goes on, and what was seen of it."""

    plans: dict[str, Plan]
    manager: LoadedCluster
    workers: dict[str, LoadedCluster]
    tasks: anyio.abc.TaskGroup
    lives: Lives = attrs.field(factory=Lives, init=False)
    _upset: set[str] = attrs.field(factory=set, init=False)

    def see(self, cluster: str, pod: Json) -> None:
        """Note a version of a pod; upset its Job once that runs, if it is planned."""
        life = self.lives.see(cluster, pod, anyio.current_time(), self._stops)
        plan = self.plans[life.job] if life else None
        if life is None or plan is None or not plan.upset or plan.name in self._upset:
            return
        runs = [life for life in self.lives.of[plan.name] if life.started is not None and life.stopped is None]
        if len(runs) == PODS if plan.attempts > 1 else life in runs and life.index == 0:
            self._upset.add(plan.name)
            self.tasks.start_soon(self._do, plan, cluster, ObjectKey.of(pod))

    def fate(self, cluster: str, pod: Json) -> Fate:
        """How a pod does."""
        life = self.lives.see(cluster, pod, anyio.current_time(), self._stops)
        assert life is not None, "there are pods of Jobs only"
        attempt = self.lives.attempts[life.job].index(life.attempt) + 1
        return self.plans[life.job].fate(attempt, life.index, self.lives.tried(life))

    def _stops(self, job: str) -> int:
        """How often it was evicted: all its pods ran then, so a new one is made for another start."""
        return int(job in self._upset and self.plans[job].attempts > 1)

    async def _do(self, plan: Plan, cluster: str, pod: ObjectKey) -> None:
        """Evict a Job's Workload on its worker or on the manager, or drain a node of a pod."""
        if plan.upset == "node":
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod.name}}
            path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/eviction"
            await self.workers[cluster].plane.admin.call("POST", path, body)
        else:
            client = self.manager.client if plan.upset == "manager" else self.workers[cluster].client
            await evict(client, ObjectKey(NAMESPACE, self._workload(plan)))

    async def submit(self) -> None:
        """Create all Jobs, one after the other."""
        for plan in self.plans.values():
            await self.manager.client.create(JOB, plan.job())

    def waiting(self) -> list[str]:
        """The Jobs that have not ended on the manager, or whose Workloads have not."""
        return [plan.name for plan in self.plans.values() if not self._over(plan)]

    async def left(self) -> list[str]:
        """What there still is on workers."""
        return [copy for worker in self.workers.values() for copy in await worker.left()]

    def amounts(self) -> dict[str, int]:
        """How much there was."""
        phases = [life.phase for life in self.lives.by_uid.values()]
        return {
            "jobs": len(self.plans),
            "doomed": sum(plan.doomed for plan in self.plans.values()),
            "evicted": sum(plan.attempts > 1 for plan in self.plans.values()),
            "drained": sum(plan.upset == "node" for plan in self.plans.values()),
            "pods": len(phases),
            "failed_pods": phases.count("Failed"),
        }

    def wrong(self) -> list[str]:
        """What is not as it should be, once all is over."""
        return [fault for plan in self.plans.values() for fault in self._wrong(plan)]

    def _wrong(self, plan: Plan) -> list[str]:
        job, attempts = self.manager.get(JOB, plan.name), self.lives.attempts.get(plan.name, [])
        if not attempts:
            return [f"{plan}: it never had a pod"]
        shown, lives = (
            (dig(job, "status", "succeeded") or 0, dig(job, "status", "failed") or 0),
            self.lives.of[plan.name],
        )
        copies = {own: copy for worker in self.workers.values() for own, copy in worker.last.items()}
        clusters = {life.cluster for life in lives}
        judged = [
            (not plan.attempts <= len(attempts) <= plan.most_attempts, f"it began {len(attempts)} times"),
            (is_true(job, "Failed") != plan.doomed, "it ended otherwise"),
            (plan.counts not in (None, shown), f"{shown} of its pods have succeeded and failed, not {plan.counts}"),
            (shown != self.lives.counts(plan.name), f"{shown}, but {self.lives.counts(plan.name)} pods did so"),
            (
                _compared(job, plan) != _compared(copies.get(attempts[-1].split()[0]), plan),
                "it does not show its copy's last status",
            ),
            (not clusters <= self.workers.keys(), f"it had pods on {clusters}"),
        ]
        faults = [what for bad, what in judged if bad]
        return [f"{plan}: {what}" for what in [*faults, *ran_twice(lives)]]

    def _workload(self, plan: Plan) -> str:
        """The name of its Workload, on all clusters."""
        return workload_name(JOB.gvk, plan.name, uid(self.manager.get(JOB, plan.name)))

    def _over(self, plan: Plan) -> bool:
        job = self.manager.get(JOB, plan.name)
        ended = is_true(job, "Complete") or is_true(job, "Failed")
        return ended and is_true(self.manager.get(WORKLOAD, self._workload(plan)), "Finished")


def _compared(job: Json | None, plan: Plan) -> Json:
    """The status of a Job, as far as it is the same on the manager and on its worker.

    A copy that its worker started once more has another start. On the manager it stays the first one if the copy had
    ended before the manager's Job was stopped: the API server lets no running Job have another.
    """
    status: Json = of_any_cluster(dig(job, "status") or {})
    return {field: value for field, value in status.items() if field != "startTime" or plan.upset != "worker"}
