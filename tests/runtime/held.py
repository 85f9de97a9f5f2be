"""A manager of many held Workloads, and workers whose queues are full. Nobody plays Kueue: statuses are written."""

from __future__ import annotations

from typing import Final

import anyio

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import CLUSTER_QUEUE, JOB, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.kinds import BATCH_JOB
from multikueue.sandbox.kueue.building import build_workload
from multikueue.sandbox.setting_up import CHECK, CLUSTER_QUEUE_NAME, FLAVOR
from multikueue.testing import job
from tests.runtime.fleet import Fleet, now

CPU: Final = 8
"""Of each worker's queue, in whole CPUs."""
SIZES: Final = 40
"""How many different requests there are: a CPU, and then 100m more each."""


async def hold(fleet: Fleet, count: int) -> list[ObjectKey]:
    """Make so many Workloads that have quota on the manager, oldest first, and workers that have no room."""
    await fleet.connect(cpu=CPU, on_manager=count * CPU)
    for name in fleet.workers:
        await use(fleet, name, 1000 * CPU)
    keys: list[ObjectKey] = []
    for number in range(count):
        keys.append(await _held(fleet, number))
        await anyio.sleep(1)  # of the same second, those with a smaller UID come first
    return keys


async def use(fleet: Fleet, worker: str, milli: int, waiting: int = 0) -> None:
    """Write what a worker's queue says: what is reserved there, and how many wait."""
    used = [{"name": FLAVOR, "resources": [{"name": "cpu", "total": f"{milli}m", "borrowed": "0"}]}]
    status = {"conditions": [_condition("Active")], "flavorsReservation": used, "pendingWorkloads": waiting}
    key = ObjectKey("", CLUSTER_QUEUE_NAME)
    client = DirectClient(fleet.workers[worker], user="kueue")
    await client.merge_patch(CLUSTER_QUEUE, key, {"status": status}, subresource="status")


async def _held(fleet: Fleet, number: int) -> ObjectKey:
    made = build_workload(BATCH_JOB, await fleet.admin.create(JOB, job(f"job-{number}", cpu=_cpu(number))), 0)
    created = await fleet.admin.create(WORKLOAD, made)
    (pod_set,) = created["spec"]["podSets"]
    assigned = {
        "name": pod_set["name"],
        "flavors": {"cpu": FLAVOR},
        "resourceUsage": {"cpu": _cpu(number)},
        "count": 1,
    }
    pending = {"name": CHECK, "state": "Pending", "message": "", "lastTransitionTime": timestamp(now())}
    status = {
        "conditions": [_condition("QuotaReserved")],
        "admission": {"clusterQueue": CLUSTER_QUEUE_NAME, "podSetAssignments": [assigned]},
        "admissionChecks": [pending],
    }
    key = ObjectKey.of(created)
    await fleet.admin.merge_patch(WORKLOAD, key, {"status": status}, subresource="status")
    return key


def _cpu(number: int) -> str:
    return f"{1000 + 100 * (number % SIZES)}m"


def _condition(kind: str) -> Json:
    said = {"status": "True", "reason": kind, "message": "", "lastTransitionTime": timestamp(now())}
    return {"type": kind, **said}
