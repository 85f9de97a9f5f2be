"""The manager's own caches."""

from __future__ import annotations

from collections import defaultdict

import anyio
import attrs
import pytest

from multikueue.core.backoff import WATCH_BACKOFF
from multikueue.core.kinds import CLUSTER_QUEUE, LOCAL_QUEUE
from multikueue.core.names import Resource
from multikueue.errors import Unreachable
from multikueue.protocols import ObjectList
from multikueue.sandbox.apiserver import DirectClient
from tests.runtime.fleet import Fleet

pytestmark = pytest.mark.looptime


QUEUES = frozenset({CLUSTER_QUEUE, LOCAL_QUEUE})


class Away(DirectClient):
    """An API server that lists nothing, or no queues; notes when it was asked in vain for what."""

    only_queues: bool
    asked: defaultdict[Resource, list[float]]

    async def list(self, resource: Resource, *, namespace: str = "", label_selector: str = "") -> ObjectList:
        if self.only_queues and resource not in QUEUES:
            return await super().list(resource, namespace=namespace, label_selector=label_selector)
        self.asked[resource].append(anyio.current_time())
        raise Unreachable("down")


@pytest.mark.parametrize("only_queues", [False, True])
async def test_every_cache_of_the_manager_has_jitter_in_its_back_off(only_queues: bool) -> None:
    """All daemons of a site must not come back to an API server in step."""
    fleet = Fleet.of()
    client = Away(fleet.manager)
    client.only_queues, client.asked = only_queues, defaultdict(list)
    manager = attrs.evolve(fleet.build(quota_automation=True), client=client, fraction=lambda: 0.5)
    with anyio.move_on_after(1):
        await manager.run()

    expected = WATCH_BACKOFF.delay(1, 0.5)
    assert expected > WATCH_BACKOFF.delay(1)
    assert len(client.asked) == 2 if only_queues else len(client.asked) > 5
    assert {asked[1] - asked[0] for asked in client.asked.values()} == {expected}
