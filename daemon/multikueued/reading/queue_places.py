"""Reads what places in queues are told by: Kueue's visibility API, and the Workloads of all namespaces."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

import anyio
import attrs

from multikueue.core.model import workloads
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.errors import ApiError
from multikueue.protocols import Reader
from multikueued.clusters import ClusterClient
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.places import Waiting, places_told, waiting
from multikueued.reports.worker_queues import local_queue_of

QUEUE: Final = Resource(GVK("visibility.kueue.x-k8s.io", "v1beta2", "LocalQueue"), "localqueues")
"""Of Kueue's visibility API, which is not served everywhere."""
DEADLINE: Final = 5.0
"""Seconds for all of it: a report does not wait for what it can do without."""
MOST_QUEUES: Final = 50
"""LocalQueues that are asked for, each by a request."""


async def read_waiting(
    client: ClusterClient, chosen: Sequence[Json], objects: ManagerObjects, namespace: str, now: datetime
) -> dict[ObjectKey, Waiting]:
    """How these Workloads wait, as far as it may be read.

    Args:
        client: of the manager.
        chosen: Workloads.
        objects: of the manager.
        namespace: whose Workloads are among the objects; empty: all.
        now: the wall clock.
    """
    without = (each for each in chosen if not workloads.has_quota(each) and not workloads.is_finished(each))
    queues = {queue for queue in map(local_queue_of, without) if queue.name}
    pending = dict[ObjectKey, int]()

    async def ask(queue: ObjectKey) -> None:
        with suppress(ApiError):  # not served, or not permitted
            pending.update(places_told(await client.part(QUEUE, queue, "pendingworkloads")))

    with anyio.move_on_after(DEADLINE):
        async with anyio.create_task_group() as tasks:
            for queue in sorted(queues)[:MOST_QUEUES]:
                tasks.start_soon(ask, queue)
    waits = waiting(chosen, objects, pending, now)
    if not namespace:
        return waits
    # The place among the held is known to those who see all that are ahead.
    return {key: attrs.evolve(wait, place=pending.get(key)) for key, wait in waits.items()}


async def with_other_jobs(client: Reader, objects: ManagerObjects, namespace: str) -> tuple[ManagerObjects, str]:
    """The objects with the Workloads of all namespaces, if they may be read soon; and whose Workloads they have then.

    Args:
        client: of the manager.
        objects: of the manager.
        namespace: whose Workloads they have; empty: all.
    """
    with anyio.move_on_after(DEADLINE if namespace else 0.0), suppress(ApiError):
        return attrs.evolve(objects, workloads=tuple((await client.list(WORKLOAD)).items)), ""
    return objects, namespace
