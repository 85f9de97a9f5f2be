"""Pods whose check becomes Ready, since our own scheduling gate holds them on the manager; and time that is over."""

from __future__ import annotations

import anyio
import pytest

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import is_active
from multikueue.sandbox.kueue.building import MAX_TIME_LABEL
from tests.examples import shared
from tests.kinds import held_pods, journeys
from tests.kinds.cases import Case, cases
from tests.kinds.sandbox_ground import sandbox_ground

pytestmark = pytest.mark.looptime

PODS = [case for case in cases() if case.name in ("pod", "podgroup", "deployment")]
LIMITED = [case for case in cases() if case.name in ("pod", "podgroup", "job")]
EVERY = pytest.mark.parametrize("case", PODS, ids=lambda case: case.name)
ENDING = pytest.mark.parametrize("case", [case for case in PODS if case.kind.course.ends], ids=lambda case: case.name)


@EVERY
async def test_they_are_admitted_and_run_on_the_worker_alone(case: Case) -> None:
    async with sandbox_ground(case, held=True) as ground:
        await held_pods.give_the_manager_nodes_of_its_own(ground)
        await held_pods.runs_held(ground, case)


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


@pytest.mark.parametrize("case", shared(PODS, lambda case: case.name))
@pytest.mark.parametrize("where", ["manager", "worker"])
async def test_kueue_deletes_them_on_an_eviction_as_on_one_cluster(case: Case, where: str) -> None:
    async with sandbox_ground(case, held=True) as ground:
        await held_pods.is_deleted_on_eviction(ground, case, where)


async def test_a_pod_that_comes_later_is_copied_without_what_kueue_filled_in() -> None:
    """A Deployment that grows: its new pods are admitted on their own."""
    (deployment,) = [case for case in PODS if case.name == "deployment"]
    async with sandbox_ground(deployment, held=True) as ground:
        await held_pods.give_the_manager_nodes_of_its_own(ground)
        await held_pods.grows_held(ground, deployment)


@EVERY
async def test_without_our_gate_the_check_stays_pending_and_says_why(case: Case) -> None:
    """They were made before the setting, or while the API server did not ask us."""
    async with sandbox_ground(case, held=True) as ground:
        ground.held = False
        await held_pods.runs_free(ground, case)


@pytest.mark.parametrize("held", [True, False], ids=["Ready", "Pending"])
@pytest.mark.parametrize("case", shared(LIMITED, lambda case: case.name))
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
        assert [(eviction["reason"], eviction["underlyingCause"], eviction["count"]) for eviction in evictions] == [
            ("Deactivated", "MaximumExecutionTimeExceeded", 1)
        ]
