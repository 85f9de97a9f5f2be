"""Several Workloads of one job, from the caches to the clusters: slices of an elastic job, parts of a group."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.labels import (
    COMPONENT_INDEX_ANNOTATION,
    CONTROLLER_NAME,
    JOB_OWNER_GVK_ANNOTATION,
    JOB_OWNER_NAME_ANNOTATION,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import cluster_name, nominated
from multikueue.errors import NotFound
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.setting_up import CHECK, LOCAL_QUEUE_NAME
from tests.runtime.fleet import Fleet, until

pytestmark = pytest.mark.looptime

AT = "2026-01-01T00:00:00Z"
JOB_KEY = ObjectKey("default", "train")
TEMPLATE: Json = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}


def said(*kinds: str, reason: str = "Said") -> list[Json]:
    return [
        {"type": kind, "status": "True", "reason": reason, "message": "m", "lastTransitionTime": AT} for kind in kinds
    ]


class Bench:
    """A fleet without Kueues: the test says what they would."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet

    def client(self, where: str = "") -> DirectClient:
        return DirectClient(self.fleet.workers[where] if where else self.fleet.manager, user="kueue")

    async def get(self, name: str, where: str = "") -> Json | None:
        try:
            return await self.client(where).get(WORKLOAD, ObjectKey("default", name))
        except NotFound:
            return None

    async def job(self, where: str = "worker1") -> Json | None:
        try:
            return await self.client(where).get(JOB, JOB_KEY)
        except NotFound:
            return None

    async def make_job(self, parallelism: int, **annotations: str) -> Json:
        spec: Json = {"suspend": True, "parallelism": parallelism, "managedBy": CONTROLLER_NAME, "template": TEMPLATE}
        metadata = {"name": "train", "namespace": "default", "annotations": annotations}
        return await self.client().create(
            JOB, {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
        )

    async def make_workload(self, name: str, job: Json, count: int, annotations: dict[str, str], **status: Any) -> None:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": job["metadata"]["uid"]}
        pod_sets = [{"name": "main", "count": count, "template": TEMPLATE}]
        metadata: Json = {"name": name, "namespace": "default", "annotations": annotations}
        metadata["ownerReferences"] = [{**owner, "controller": True}]
        spec = {"queueName": LOCAL_QUEUE_NAME, "podSets": pod_sets}
        made = {"apiVersion": WORKLOAD.gvk.api_version, "kind": "Workload", "metadata": metadata, "spec": spec}
        await self.client().create(WORKLOAD, made)
        await self.say(name, admission=self.admission(count), **status)

    @staticmethod
    def admission(count: int) -> Json:
        return {"clusterQueue": "cluster-queue", "podSetAssignments": [{"name": "main", "count": count}]}

    async def say(self, name: str, where: str = "", *, state: str = "Pending", **status: Any) -> None:
        if not where:
            status["admissionChecks"] = [{"name": CHECK, "state": state, "message": "", "lastTransitionTime": AT}]
        key = ObjectKey("default", name)
        await self.client(where).merge_patch(WORKLOAD, key, {"status": status}, subresource="status")

    async def admit(self, name: str, where: str) -> None:
        async def is_there() -> bool:
            return await self.get(name, where) is not None

        await until(is_there)
        await self.say(name, where, conditions=said("QuotaReserved", "Admitted"))

    async def has_place(self, name: str) -> bool:
        return cluster_name(await self.get(name) or {}) is not None

    async def is_ready(self, name: str) -> bool:
        checks = dig(await self.get(name) or {}, "status", "admissionChecks") or [{}]
        return bool(checks[0].get("state") == "Ready")


async def test_what_an_earlier_job_of_the_same_name_did_is_not_told_of_the_new_one() -> None:
    """Its Workload lingers until it is collected: the new job would look finished before it began."""
    fleet = await Fleet.connected("worker1")
    bench = Bench(fleet)
    async with fleet.dispatching():
        job = await bench.make_job(1)
        await bench.make_workload("old", job, 1, {}, conditions=said("QuotaReserved"))
        await bench.admit("old", "worker1")
        await until(lambda: bench.is_ready("old"))
        await bench.client().delete(JOB, JOB_KEY, propagation="Background")
        await bench.make_job(1)
        ended: Json = {"startTime": AT, "completionTime": AT, "succeeded": 1}
        ended["conditions"] = said("SuccessCriteriaMet", "Complete")
        await bench.client("worker1").merge_patch(JOB, JOB_KEY, {"status": ended}, subresource="status")
        await anyio.sleep(60)
        assert not dig(await bench.job(""), "status")


async def test_a_group_goes_to_one_worker_and_nobody_polls() -> None:
    """The first part finds it, the second follows at once, and then it is quiet (item 7)."""
    fleet = await Fleet.connected("worker1", "worker2")
    bench = Bench(fleet)
    async with fleet.dispatching() as manager:
        job = await bench.make_job(1)
        for index in ("1", "0"):
            marks = {COMPONENT_INDEX_ANNOTATION: index}
            marks |= {JOB_OWNER_GVK_ANNOTATION: str(JOB.gvk), JOB_OWNER_NAME_ANNOTATION: "train"}
            await bench.make_workload(f"part-{index}", job, 1, marks, conditions=said("QuotaReserved"))
        await bench.admit("part-0", "worker2")
        await until(lambda: bench.has_place("part-0"))
        await bench.admit("part-1", "worker2")
        await until(lambda: bench.is_ready("part-1"))
        assert cluster_name(await bench.get("part-1") or {}) == "worker2"
        assert nominated(await bench.get("part-1") or {}) == ()
        assert await bench.get("part-1", "worker1") is None

        await anyio.sleep(10)
        quiet = fleet.requests("worker2", "patch", JOB), manager.statistics()["multikueue_workload"]
        await anyio.sleep(30)
        assert (fleet.requests("worker2", "patch", JOB), manager.statistics()["multikueue_workload"]) == quiet

        await bench.client().delete(WORKLOAD, ObjectKey("default", "part-0"))
        await anyio.sleep(30)
        assert await bench.get("part-0", "worker2") is None
        assert await bench.job("worker2") is not None
        await bench.client().delete(WORKLOAD, ObjectKey("default", "part-1"))
        await anyio.sleep(30)
        assert await bench.job("worker2") is None
