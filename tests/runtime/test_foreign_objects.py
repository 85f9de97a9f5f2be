"""A worker's own objects, shown by a server that does not look at selectors.

A job that the manager's own controller began before a daemon watched is found in a list, and runs nowhere else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import orjson
import pytest

from multikueue.core.model.conditions import condition
from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.names import ClusterName, Resource
from multikueue.kube import ClusterConfig, KubeClient, parse_worker_kubeconfig
from multikueue.protocols import ApiClient, ObjectList
from multikueue.sandbox.apiserver import DirectClient
from multikueue.testing import job
from tests.runtime.fleet import Fleet, until


class Careless(DirectClient):
    """As through a proxy that drops what it does not know of a query."""

    async def list(self, resource: Resource, **options: Any) -> ObjectList:
        return await super().list(resource, **{**options, "label_selector": ""})

    async def watch(self, resource: Resource, *arguments: Any, **options: Any) -> None:
        await super().watch(resource, *arguments, **{**options, "label_selector": ""})


@pytest.mark.looptime
async def test_what_others_have_there_is_not_deleted() -> None:
    """Every Workload that the manager lacks is taken for garbage: the worker's own went, and their jobs with them."""
    fleet = Fleet.of("worker1")
    worker = DirectClient(fleet.workers["worker1"])

    def connect(name: ClusterName, config: ClusterConfig) -> AbstractAsyncContextManager[ApiClient]:
        @asynccontextmanager
        async def opened() -> AsyncIterator[ApiClient]:
            yield Careless(fleet.workers[name], user="multikueue")

        return opened()

    async with fleet.kueues():
        await fleet.connect()
        theirs = job("theirs")
        del theirs["spec"]["managedBy"]
        await worker.create(JOB, theirs)
        async with fleet.running(fleet.build(connect=connect)):
            await fleet.submit("ours")
            await until(fleet.running_on)
            await anyio.sleep(300)
            jobs = [job["metadata"]["name"] for job in (await worker.list(JOB)).items]
            workloads = (await worker.list(WORKLOAD)).items
    assert sorted(jobs) == ["ours", "theirs"]
    assert len(workloads) == 2


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
