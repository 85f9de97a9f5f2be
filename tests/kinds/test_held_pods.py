"""Pods whose check becomes Ready, since our own scheduling gate holds them on the manager; and time that is over."""

from __future__ import annotations

import anyio
import pytest

from multikueue.core.model.kinds import RESOURCE_FLAVOR, WORKLOAD
from multikueue.core.model.labels import ADMISSION_GATE, HOLDING_GATE
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import check, is_active, is_admitted
from multikueue.sandbox.kinds.pods import POD_RESOURCE
from multikueue.sandbox.kueue import evict
from multikueue.sandbox.kueue.building import MAX_TIME_LABEL
from multikueue.sandbox.setting_up import CHECK, FLAVOR
from tests.kinds import journeys
from tests.kinds.cases import Case, cases
from tests.kinds.ground import Ground
from tests.kinds.sandbox_ground import sandbox_ground

pytestmark = pytest.mark.looptime

PODS = [case for case in cases() if case.name in ("pod", "podgroup", "deployment")]
EVERY = pytest.mark.parametrize("case", PODS, ids=lambda case: case.name)
ENDING = pytest.mark.parametrize("case", [case for case in PODS if case.kind.course.ends], ids=lambda case: case.name)
LIMITED = [case for case in cases() if case.name in ("pod", "podgroup", "job")]
(DEPLOYMENT,) = [case for case in PODS if case.name == "deployment"]
POOL = {"pool": "of-the-manager"}


def gates(pod: Json) -> list[str]:
    return [gate["name"] for gate in dig(pod, "spec", "schedulingGates") or []]


def pods_on(ground: Ground, where: str, name: str) -> list[Json]:
    """The pods of a job, or of a set, on one cluster."""
    cluster = next(one for one in ground.clusters if one.name == where)
    return [
        pod
        for (resource, own), pod in sorted(cluster.now.items(), key=lambda item: item[0][1])
        if resource == POD_RESOURCE and (own.startswith(name) or dig(pod, "metadata", "labels", "app") == name)
    ]


async def with_a_node_selector(ground: Ground) -> None:
    """The manager's flavor has nodes of its own; Kueue writes them into what it starts."""
    await ground.manager.client.merge_patch(RESOURCE_FLAVOR, ObjectKey("", FLAVOR), {"spec": {"nodeLabels": POOL}})


async def admitted(ground: Ground, case: Case, name: str) -> None:
    """Wait until every Workload of a job is Admitted, and Kueue has opened its gates."""

    def look() -> bool:
        workloads, pods = ground.workloads_of(case.kind, name), pods_on(ground, "manager", name)
        so = bool(workloads) and all(is_admitted(one) for one in workloads)
        return so and bool(pods) and all(gates(pod) == [HOLDING_GATE] for pod in pods)

    await ground.until(look, lambda: ground.story(case.kind, name))


@EVERY
async def test_they_are_admitted_and_run_on_the_worker_alone(case: Case) -> None:
    """Kueue opens its gate and fills in its node selector; ours keeps them where they are."""
    name = "held"
    async with sandbox_ground(case, held=True) as ground:
        await with_a_node_selector(ground)
        await ground.submit(case.kind, name, duration="1h")
        await ground.running(case.kind, name)
        await admitted(ground, case, name)

        for pod in pods_on(ground, "manager", name):
            assert pod["spec"]["nodeSelector"] == POOL
        copies = [pod for worker in ground.workers for pod in pods_on(ground, worker, name)]
        assert len(copies) == len(pods_on(ground, "manager", name))
        for pod in copies:
            assert (gates(pod), dig(pod, "spec", "nodeSelector")) == ([], None)
        for worker in ground.workers.values():
            for (resource, _), first in worker.first.items():
                assert resource != POD_RESOURCE or gates(first) == [ADMISSION_GATE]


@ENDING
async def test_they_end_as_ever(case: Case) -> None:
    async with sandbox_ground(case, held=True) as ground:
        await ground.submit(case.kind, "ends")
        await ground.ended(case.kind, "ends", "Succeeded")
        await ground.cleaned(case.kind, "ends")
        await journeys.fails(ground, case)


@EVERY
async def test_what_is_deleted_does_not_go_on(case: Case) -> None:
    async with sandbox_ground(case, held=True) as ground:
        await journeys.deleted(ground, case)


@EVERY
@pytest.mark.parametrize("where", ["manager", "worker"])
async def test_kueue_deletes_them_on_an_eviction_as_on_one_cluster(case: Case, where: str) -> None:
    """Whoever owns them makes them again: then they run again."""
    name = "evicted"
    async with sandbox_ground(case, held=True) as ground:
        await ground.submit(case.kind, name, duration="1h")
        worker = await ground.running(case.kind, name)
        await admitted(ground, case, name)
        before = {pod["metadata"]["uid"] for pod in pods_on(ground, "manager", name)}
        (workload, *_) = [
            one for one in ground.workloads_of(case.kind, name) if dig(one, "status", "clusterName") == worker
        ]
        client = ground.manager.client if where == "manager" else ground.workers[worker].client
        await evict(client, ObjectKey.of(workload))

        def replaced() -> bool:
            now = {pod["metadata"]["uid"] for pod in pods_on(ground, "manager", name)}
            return not before <= now and (case is not DEPLOYMENT or len(now) == len(before))

        await ground.until(replaced, lambda: ground.story(case.kind, name))
        if case is DEPLOYMENT:
            await ground.running(case.kind, name)
            await admitted(ground, case, name)
        else:
            await ground.until(lambda: not pods_on(ground, "manager", name), lambda: ground.story(case.kind, name))
            await ground.cleaned(case.kind, name)


async def test_a_pod_that_comes_later_is_copied_without_what_kueue_filled_in() -> None:
    """A Deployment that grows: its new pods are admitted on their own."""
    name = "grows"
    async with sandbox_ground(DEPLOYMENT, held=True) as ground:
        await with_a_node_selector(ground)
        await ground.submit(DEPLOYMENT.kind, name)
        await ground.running(DEPLOYMENT.kind, name)
        await ground.resize(DEPLOYMENT.kind, name, ("spec", "replicas"), 3)
        await ground.until(
            lambda: len(pods_on(ground, "manager", name)) == 3, lambda: ground.story(DEPLOYMENT.kind, name)
        )
        await ground.running(DEPLOYMENT.kind, name)
        await admitted(ground, DEPLOYMENT, name)
        copies = [pod for worker in ground.workers for pod in pods_on(ground, worker, name)]
        assert len(copies) == 3
        assert not any(dig(pod, "spec", "nodeSelector") for pod in copies)


@EVERY
async def test_without_our_gate_the_check_stays_pending_and_says_why(case: Case) -> None:
    """They were made before the setting, or while the API server did not ask us."""
    name = "free"
    async with sandbox_ground(case, held=True) as ground:
        ground.held = False
        await ground.submit(case.kind, name, duration="1h")
        await ground.running(case.kind, name)
        for workload in ground.workloads_of(case.kind, name):
            entry = check(workload, CHECK) or {}
            assert entry["state"] == "Pending"
            assert f"lacks the scheduling gate {HOLDING_GATE}" in entry["message"]
        assert all(gates(pod) == [ADMISSION_GATE] for pod in pods_on(ground, "manager", name))


@pytest.mark.parametrize("held", [True, False], ids=["Ready", "Pending"])
@pytest.mark.parametrize("case", LIMITED, ids=lambda case: case.name)
async def test_time_that_is_over_is_over(case: Case, held: bool) -> None:
    """On one cluster Kueue deactivates such a Workload. It was once sent from worker to worker without end."""
    name = "slow"
    async with sandbox_ground(case, held=held and case.name != "job") as ground:
        ground.labels = {MAX_TIME_LABEL: "60"}
        await ground.submit(case.kind, name, duration="1h")
        worker = await ground.running(case.kind, name)
        (workload,) = ground.workloads_of(case.kind, name)
        place = (WORKLOAD, workload["metadata"]["name"])
        await anyio.sleep(50)
        await ground.until(lambda: not is_active(ground.manager.last[place]), lambda: ground.story(case.kind, name))
        await ground.cleaned(case.kind, name)
        await anyio.sleep(600)
        await ground.cleaned(case.kind, name)

        assert ground.ran_on(case.kind, name) == [worker]
        evictions = dig(ground.manager.last[place], "status", "schedulingStats", "evictions")
        assert [(one["reason"], one["underlyingCause"], one["count"]) for one in evictions] == [
            ("Deactivated", "MaximumExecutionTimeExceeded", 1)
        ]
