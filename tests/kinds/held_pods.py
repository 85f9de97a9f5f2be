"""What a user of pods may rely on whose check becomes Ready: our own scheduling gate holds them on the manager."""

from __future__ import annotations

from typing import Final

from multikueue.core.model.kinds import RESOURCE_FLAVOR
from multikueue.core.model.labels import ADMISSION_GATE, HOLDING_GATE
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import check, is_admitted
from multikueue.sandbox.kinds.pods import POD_RESOURCE
from multikueue.sandbox.kueue import evict
from multikueue.sandbox.setting_up import CHECK, FLAVOR
from tests.kinds.cases import Case
from tests.kinds.ground import Ground

POOL: Final = {"pool": "of-the-manager"}
"""The node selector that the manager's Kueue fills in."""


async def give_the_manager_nodes_of_its_own(ground: Ground) -> None:
    """Kueue writes their labels into what it starts."""
    await ground.manager.client.merge_patch(RESOURCE_FLAVOR, ObjectKey("", FLAVOR), {"spec": {"nodeLabels": POOL}})


def gates(pod: Json) -> list[str]:
    """The names of a pod's scheduling gates."""
    return [gate["name"] for gate in dig(pod, "spec", "schedulingGates") or []]


def pods_on(ground: Ground, where: str, name: str) -> list[Json]:
    """The pods of a job, or of a set, on one cluster."""
    cluster = next(cluster for cluster in ground.clusters if cluster.name == where)
    return [
        pod
        for (resource, own), pod in sorted(cluster.now.items(), key=lambda item: item[0][1])
        if resource == POD_RESOURCE and own.startswith(name)
    ]


async def admitted(ground: Ground, case: Case, name: str, *, pods: int | None = None) -> list[Json]:
    """Wait until every Workload of a job is Admitted and its pods run, held by our gate alone; return these pods."""

    def look() -> list[Json] | None:
        workloads, pods_there = ground.workloads_of(case.kind, name), pods_on(ground, "manager", name)
        so = bool(workloads) and all(is_admitted(workload) for workload in workloads)
        held = all(gates(pod) == [HOLDING_GATE] and dig(pod, "status", "phase") == "Running" for pod in pods_there)
        return pods_there if so and held and pods_there and pods in (None, len(pods_there)) else None

    return await ground.until(look, lambda: ground.story(case.kind, name))


async def runs_held(ground: Ground, case: Case) -> None:
    """Kueue opens its gate and fills in its node selector; the pods stay where they are, and run on a worker."""
    name = f"{case.name}-held"
    jobs = await ground.submit(case.kind, name, duration="1h")
    await ground.running(case.kind, name)
    held = await admitted(ground, case, name)

    assert all(pod["spec"]["nodeSelector"] == POOL and "nodeName" not in pod["spec"] for pod in held)
    _check_copies(ground, name, len(held))
    await ground.delete(case.kind, jobs)
    await ground.cleaned(case.kind, name)


async def is_deleted_on_eviction(ground: Ground, case: Case, where: str) -> None:
    """As on one cluster. Whoever owns the pods makes them again: then they run again.

    Args:
        ground: where all this happens.
        case: the kind.
        where: `manager` or `worker`: whose Kueue evicts.
    """
    name = f"{case.name}-evicted-{where}"
    jobs = await ground.submit(case.kind, name, duration="1h")
    worker = await ground.running(case.kind, name)
    before = {pod["metadata"]["uid"] for pod in await admitted(ground, case, name)}
    there = [
        workload
        for workload in ground.workloads_of(case.kind, name)
        if dig(workload, "status", "clusterName") == worker
    ]
    cluster = ground.manager if where == "manager" else ground.workers[worker]
    await evict(cluster.client, ObjectKey.of(there[0]))
    owned = case.name == "deployment"

    def replaced() -> bool:
        now = {pod["metadata"]["uid"] for pod in pods_on(ground, "manager", name)}
        return not before <= now and len(now) == (len(before) if owned else 0)

    await ground.until(replaced, lambda: ground.story(case.kind, name))
    if owned:
        await admitted(ground, case, name, pods=len(before))
        await ground.delete(case.kind, jobs)
    await ground.cleaned(case.kind, name)


async def grows_held(ground: Ground, case: Case) -> None:
    """A pod that comes later is copied without what the manager's Kueue fills in."""
    name = f"{case.name}-grows"
    jobs = await ground.submit(case.kind, name)
    await ground.running(case.kind, name)
    await ground.resize(case.kind, name, ("spec", "replicas"), 3)
    await admitted(ground, case, name, pods=3)
    _check_copies(ground, name, 3)
    await ground.delete(case.kind, jobs)
    await ground.cleaned(case.kind, name)


async def runs_free(ground: Ground, case: Case) -> None:
    """Pods that were made while nobody was asked about them run as ever; the check stays Pending and says why."""
    name = f"{case.name}-free"
    jobs = await ground.submit(case.kind, name, duration="1h")
    await ground.running(case.kind, name)
    for workload in ground.workloads_of(case.kind, name):
        entry = check(workload, CHECK) or {}
        assert entry["state"] == "Pending"
        assert f"lacks the scheduling gate {HOLDING_GATE}" in entry["message"]
    assert all(gates(pod) == [ADMISSION_GATE] for pod in pods_on(ground, "manager", name))
    await ground.delete(case.kind, jobs)
    await ground.cleaned(case.kind, name)


def _check_copies(ground: Ground, name: str, count: int) -> None:
    copies = [pod for worker in ground.workers for pod in pods_on(ground, worker, name)]
    assert len(copies) == count
    assert not any(gates(pod) or dig(pod, "spec", "nodeSelector") for pod in copies)
    for worker in ground.workers.values():
        made = [pod for (resource, own), pod in worker.first.items() if resource == POD_RESOURCE]
        assert all(HOLDING_GATE not in gates(pod) for pod in made)
