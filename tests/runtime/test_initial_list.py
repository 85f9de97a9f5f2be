"""The Workloads are listed once when a daemon begins, and what happens meanwhile is not missed."""

from __future__ import annotations

from collections import Counter

import anyio
import attrs
import pytest

from multikueue.adapters import BUILTIN, AdapterRegistry
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Resource
from multikueue.core.model.workloads import check_state
from multikueue.kube.informers.list_pages import InitialList
from multikueue.protocols import ObjectList
from multikueue.runtime.caches.unregistered_kinds import with_running_kinds
from multikueue.runtime.manager import Manager
from multikueue.sandbox.apiserver import DirectClient
from tests.runtime.fleet import CHECK, Fleet, is_active, until

pytestmark = pytest.mark.looptime


class Lister(DirectClient):
    """Counts the lists of whole kinds."""

    lists: Counter[Resource]

    async def list(
        self, resource: Resource, *, namespace: str = "", label_selector: str = "", limit: int = 0, each: object = None
    ) -> ObjectList:
        self.lists[resource] += not label_selector
        return await super().list(resource, namespace=namespace, label_selector=label_selector, limit=limit)


async def begun(fleet: Fleet) -> tuple[Lister, Manager]:
    """What a daemon reads before it has a manager, and its manager."""
    client = Lister(fleet.manager, user="multikueue")
    client.lists = Counter()
    adapters = await with_running_kinds(AdapterRegistry(BUILTIN), client)
    return client, attrs.evolve(fleet.build(client=client), before=adapters.before)


async def test_the_workloads_that_were_read_are_not_listed_again() -> None:
    fleet = Fleet.of("worker1")
    async with fleet.kueues():
        await fleet.connect()
        await fleet.submit("before")
        client, manager = await begun(fleet)
        await fleet.submit("meanwhile")
        async with fleet.running(manager):
            await until(is_active(fleet))

            async def both_ready() -> bool:
                workloads = (await fleet.admin.list(WORKLOAD)).items
                return [check_state(workload, CHECK) for workload in workloads] == ["Ready", "Ready"]

            await until(both_ready)
    assert client.lists[WORKLOAD] == 1
    assert manager.before.take() is None  # or else it would stay in memory


async def test_a_version_that_the_server_does_not_keep_any_more_is_listed_again() -> None:
    fleet = Fleet.of("worker1")
    client, manager = await begun(fleet)
    listed = manager.before.take()
    assert listed is not None
    old = InitialList(attrs.evolve(listed, resource_version="1"))
    fleet.manager.compact()
    async with fleet.running(attrs.evolve(manager, before=old)):
        await anyio.sleep(60)
    assert client.lists[WORKLOAD] == 2
