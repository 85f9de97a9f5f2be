"""`multikueue worker cordon` and `uncordon`: nothing new for a worker, and what it has stays."""

from __future__ import annotations

from typing import Final

from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, WORKLOAD
from multikueue.core.model.labels import CORDON_ANNOTATION, MOVE_FROM_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import annotations_of, uid
from multikueued.workers.jobs import running_on
from multikueued.workers.places import ManagerAccess

IGNORED: Final = "Kueue's built-in MultiKueue controller ignores a cordon: it takes multikueue's daemon."
"""Told with every cordon."""


async def cordon(manager: ManagerAccess, worker: str, reason: str = "") -> list[Json]:
    """Offer nothing new to a worker; return the Workloads that stay there.

    Raises:
        WorkerError: there is no such worker.
    """
    await _annotate(manager, MULTIKUEUE_CLUSTER, await manager.cluster(worker), CORDON_ANNOTATION, reason or "true")
    running = await running_on(manager, worker)
    manager.say(f"{worker} is cordoned: it gets nothing new, and keeps {_count(len(running))} that it has. {IGNORED}")
    return running


async def uncordon(manager: ManagerAccess, worker: str) -> None:
    """Offer to a worker again; jobs that were asked to leave it and have not left stay.

    Raises:
        WorkerError: there is no such worker.
    """
    await _annotate(manager, MULTIKUEUE_CLUSTER, await manager.cluster(worker), CORDON_ANNOTATION, None)
    asked = [
        one
        for one in (await manager.client.list(WORKLOAD)).items
        if annotations_of(one).get(MOVE_FROM_ANNOTATION) == worker
    ]
    for workload in asked:
        await ask_to_leave(manager, workload, None)
    back = f"; {_count(len(asked))} that should leave it may go there again" if asked else ""
    manager.say(f"{worker} is offered jobs again{back}")


async def ask_to_leave(manager: ManagerAccess, workload: Json, worker: str | None) -> None:
    """Ask the daemon to move a Workload away from a worker, or not any more."""
    await _annotate(manager, WORKLOAD, workload, MOVE_FROM_ANNOTATION, worker)


async def _annotate(manager: ManagerAccess, resource: Resource, obj: Json, name: str, value: str | None) -> None:
    patch = {"metadata": {"uid": uid(obj), "annotations": {name: value}}}
    await manager.client.merge_patch(resource, ObjectKey.of(obj), patch)


def _count(jobs: int) -> str:
    return "1 job" if jobs == 1 else f"{jobs} jobs"
