"""What must hold in the end, once nothing breaks any more."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Final

import anyio

from multikueue.core.model.conditions import changed_at, is_true
from multikueue.core.model.kinds import CONFIG_MAP, DEPLOYMENT, EVENT, JOB, NAMESPACE, RESOURCE_FLAVOR, WORKLOAD
from multikueue.core.model.labels import ORIGIN_NAMESPACE_ANNOTATION, QUEUE_LABEL, REFUSAL_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import annotations_of, dig, is_terminating, labels_of, uid
from multikueue.core.model.placements import placements
from multikueue.core.model.workloads import (
    OUT_OF_SYNC,
    OWNER_NOT_FOUND,
    cluster_name,
    finish_reason,
    is_elastic,
    is_finished,
    owner,
)
from multikueue.errors import Cause
from multikueue.runtime.caches import flavor_list
from multikueue.runtime.workers.kind_watch import UNUSED_AFTER
from multikueue.sandbox.jobs.pods import owners
from multikueue.sandbox.kinds.pods import POD_RESOURCE
from tests.simulation.foreign import has_namesake
from tests.simulation.objects import find, has_ended, is_ours, objects
from tests.simulation.population import JOBS, PLACED
from tests.simulation.reach import Reach
from tests.simulation.running import running_on, workloads_of
from tests.simulation.virtual_time import wall_clock
from tests.simulation.world import CANARY, SimCluster, World

ONCE: Final = (str(DEPLOYMENT), str(NAMESPACE))
"""What is read for each connection: the worker's Kueue, and which cluster it is."""
SHOWN: Final = 210.0
"""Virtual seconds within which an end shows that is to be shown: with a back-off of 72 s at most, and where it might
run out of sight, after another look in two minutes."""


def unfinished(world: World, *, serving: bool = False) -> list[str]:
    """Workloads that are neither finished nor waiting for a true reason: off, or without a worker that could take them.

    Args:
        world: the fleet.
        serving: whether what serves on its worker has arrived, for it never finishes.
    """
    left = []
    for workload in objects(world.manager, WORKLOAD):
        if is_true(workload, "Finished") or dig(workload, "spec", "active") is False:
            continue
        if (serving and serves(world, workload)) or _is_kept_out(world, workload):
            continue
        conditions = {entry["type"]: entry["status"] for entry in dig(workload, "status", "conditions") or []}
        left.append(f"{ObjectKey.of(workload)} {conditions} on {dig(workload, 'status', 'clusterName')}")
    return [*left, *_stopped(world)]


def _stopped(world: World) -> Iterator[str]:
    """Jobs of the manager that wait for a Workload: the next is made once they show that they run no more."""
    for job in objects(world.manager, JOB):
        owned = (workload for workload in objects(world.manager, WORKLOAD) if uid(job) in owners(workload))
        if QUEUE_LABEL in labels_of(job) and not has_ended(job) and not is_terminating(job) and not any(owned):
            yield f"{ObjectKey.of(job)} has no Workload"


def unshown(world: World, removed: Collection[ObjectKey], reach: Reach) -> list[str]:
    """Jobs of the manager that do not show their end, though their Workload has finished.

    Args:
        world: the fleet.
        removed: jobs and Workloads of which somebody has removed copies, perhaps before the daemon saw the end.
        reach: a job copy that cannot be read for long is not waited for: its Workload copy tells the end.
    """
    hidden = []
    for workload in objects(world.manager, WORKLOAD):
        owned_by = owner(workload)
        spent = finish_reason(workload) in (OUT_OF_SYNC, OWNER_NOT_FOUND) or is_elastic(workload)
        if not is_finished(workload) or spent or owned_by is None or owned_by.gvk != JOB.gvk:
            continue
        job = find(world.manager, JOB, ObjectKey(workload["metadata"]["namespace"], owned_by.name))
        uids = [reference["uid"] for reference in workload["metadata"].get("ownerReferences", ())]
        known = job is not None and not {ObjectKey.of(job), ObjectKey.of(workload)}.intersection(removed)
        if job is not None and known and job["metadata"]["uid"] in uids and not has_ended(job):
            hidden += [] if _was_unknown(workload, reach) else [str(ObjectKey.of(job))]
    return hidden


async def wait_until_shown(world: World, removed: Collection[ObjectKey], reach: Reach, since: float) -> None:
    """Wait for what is `unshown`, for as long as what the manager has refused till the end takes to be sent again.

    Args:
        world: the fleet.
        removed: see `unshown`.
        reach: see `unshown`.
        since: when a daemon runs again, at the latest.
    """
    deadline = max(anyio.current_time(), since) + SHOWN
    while unshown(world, removed, reach):
        if anyio.current_time() > deadline:
            break
        await anyio.sleep(15.0)


def _was_unknown(workload: Json, reach: Reach) -> bool:
    """Whether what of it was on a worker that had it may have been unknown when it was finished."""
    had_it = {cluster_name(workload), *(placement.get("worker") for placement in placements(workload))}
    finished = changed_at(workload, "Finished") or wall_clock()()
    at = anyio.current_time() - (wall_clock()() - finished).total_seconds()
    return any(reach.unknown_until(name) > at for name in had_it if name is not None)


def orphans(world: World) -> list[str]:
    """Copies that should not be there (any more), wherever the daemon can still do something about it."""
    local = {ObjectKey.of(workload): workload for workload in objects(world.manager, WORKLOAD)}
    left = [
        f"{CONFIG_MAP} {ObjectKey.of(copy)} on {name}"
        for name, worker in world.workers.items()
        if name not in world.gone
        for copy in objects(worker, CONFIG_MAP)
        if is_ours(copy) and copy["metadata"]["uid"] not in world.orphaned
    ]
    return left + [
        f"{resource} {ObjectKey.of(copy)} on {name}"
        for name, worker in world.workers.items()
        if name not in world.gone
        for resource in (WORKLOAD, *(kind.resource for kind in world.population.all_kinds))
        for copy in objects(worker, resource)
        if is_ours(copy) and not _is_wanted(copy, resource, worker, local)
        if name != world.own or ORIGIN_NAMESPACE_ANNOTATION in annotations_of(copy)  # else it is the manager's user's
    ]


def leaks(world: World) -> list[str]:
    """Objects a user can read that hold a credential."""
    leaked = []
    for cluster in world.clusters:
        for types in list(cluster.registry.cluster.types.values()):
            if types.plural == "secrets":
                continue
            for entry in cluster.registry.cluster.store.bucket((types.group, types.plural)).objects.values():
                if CANARY.encode() in entry.raw:
                    leaked.append(f"{types.plural} {ObjectKey.of(entry.obj)} on {cluster.name}")
    return leaked


def overspent(world: World) -> list[str]:
    """Where more was asked than a fleet without troubles is worth: 2W+4 writes a job, and not one read.

    A write that meets one of the worker's Kueue is asked again, once: all may admit a job at the same time.
    """
    jobs, workers = len(list(objects(world.manager, JOB))), len(world.workers)
    excesses, writes = [], 0
    for name, worker in world.workers.items():
        for what, count in sorted(worker.link.requests.items()):
            verb, _, kind = what.partition(" ")
            once = verb in ("list", "schema") or kind in ONCE
            if (once and count > _lists(world, verb, kind)) or (verb == "get" and not once):
                excesses.append(f"{count} times {what} on {name}")
            if verb not in ("get", "list", "schema", "discover", "watch", "probe"):
                writes += max(count - worker.link.conflicts[what], (count + 1) // 2)
    if world.population in (JOBS, PLACED) and writes > jobs * (2 * workers + 4):
        requests = json.dumps({name: dict(worker.link.requests) for name, worker in world.workers.items()})
        excesses.append(f"{writes} writes for {jobs} jobs on {workers} workers: {requests}")
    return excesses


def _lists(world: World, verb: str, kind: str) -> float:
    """How often a kind may be read: a kind of jobs when a worker is connected, and when a job comes after a while."""
    if verb != "list" or kind == str(WORKLOAD):
        return 1
    if kind == str(RESOURCE_FLAVOR):
        return 2 + anyio.current_time() // flavor_list.INTERVAL
    return 2 if world.unused_after == UNUSED_AFTER else float("inf")


def serves(world: World, workload: Json) -> bool:
    """Whether pods of a set run for a Workload on its worker."""
    worker = world.workers.get(str(world.place_of(cluster_name(workload))))
    return worker is not None and any(
        key == ObjectKey.of(workload) and item.plural == POD_RESOURCE.plural for item, key in running_on(worker)
    )


def _is_kept_out(world: World, workload: Json) -> bool:
    """Whether no worker may take it, ever, and its user has been told which object is to be renamed or deleted."""
    there = [worker for name, worker in world.workers.items() if name not in world.gone | world.unfit]
    refusing = {
        dig(event, "related", "name")
        for event in objects(world.manager, EVENT)
        if dig(event, "regarding", "uid") == uid(workload)
        and json.loads(annotations_of(event).get(REFUSAL_ANNOTATION, "{}")).get("cause") == Cause.NAME_TAKEN
    }
    return (
        bool(there)
        and cluster_name(workload) is None
        and all(has_namesake(worker, workload) and worker.name in refusing for worker in there)
    )


def _is_wanted(copy: Json, resource: Resource, worker: SimCluster, local: dict[ObjectKey, Json]) -> bool:
    return any(_is_wanted_for(worker, local.get(key)) for key in workloads_of(copy, resource))


def _is_wanted_for(worker: SimCluster, workload: Json | None) -> bool:
    if workload is None or is_true(workload, "Finished") or not is_true(workload, "QuotaReserved"):
        return False
    status = workload.get("status", {})
    chosen = status.get("clusterName")
    asked = [chosen] if chosen else status.get("nominatedClusterNames") or ()
    return not {worker.name, *worker.names}.isdisjoint(asked)
