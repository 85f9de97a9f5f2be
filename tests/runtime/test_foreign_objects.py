"""A worker's own objects, shown by a server that does not look at selectors."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import pytest

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.names import ClusterName, Resource
from multikueue.kube import ClusterConfig
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
