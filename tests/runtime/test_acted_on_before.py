"""A job that the manager's own controller began before a daemon watched is found in a list, and runs nowhere else."""

from __future__ import annotations

import orjson
import pytest

from multikueue.core.model.conditions import condition
from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.kube import KubeClient, parse_worker_kubeconfig
from multikueue.sandbox.apiserver import DirectClient
from tests.runtime.fleet import Fleet, until


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_job_that_runs_on_the_manager_runs_on_no_worker(when: str) -> None:
    """Lists lost who had written the status: what was begun before the daemon started ran on a worker, too."""
    fleet = await Fleet.connected("worker1")
    controller = DirectClient(fleet.manager, user="admin")
    begun = {"status": {"active": 1}}

    async def begin() -> None:
        await controller.apply(
            JOB,
            {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job", "namespace": "default"}} | begun,
            field_manager="kube-controller-manager",
            subresource="status",
        )

    async def submitted() -> bool:
        return bool((await controller.list(WORKLOAD)).items)

    async with fleet.manager, fleet.kueues():
        await fleet.submit()
        await until(submitted)
        if when == "before":
            await begin()
        config = parse_worker_kubeconfig(orjson.dumps(fleet.manager.kubeconfig("multikueue")))
        async with KubeClient(config, name="manager") as client, fleet.running(fleet.build(client=client)):
            if when == "after":
                await begin()

            async def rejected() -> bool:
                evicted = condition(await fleet.workload(), "Evicted") or {}
                return evicted.get("reason") == "DeactivatedDueToAdmissionCheck"

            await until(rejected)
            assert (await DirectClient(fleet.workers["worker1"]).list(JOB)).items == []
