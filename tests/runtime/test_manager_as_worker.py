"""The manager as one of its own workers: told by its UID, refused without names of its own, and then like any other."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from multikueue.core.model.kinds import CLUSTER_QUEUE, JOB, LOCAL_QUEUE, MULTIKUEUE_CLUSTER, NAMESPACE, WORKLOAD
from multikueue.core.model.labels import NAMESPACES_ANNOTATION, ORIGIN_LABEL
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import labels_of
from multikueue.core.model.workloads import check, cluster_name, is_finished
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.jobs import RunnerOptions
from multikueue.sandbox.setting_up import (
    CHECK,
    LOCAL_QUEUE_NAME,
    cluster_queue,
    connect_workers,
    local_queue,
    namespace,
    set_up_queues,
)
from tests.runtime.fleet import Fleet, is_active, kubeconfig, until

pytestmark = pytest.mark.looptime

APART = {"default": "local-default"}
POOL = "local-pool"


@asynccontextmanager
async def fleet_of(mapping: object, *remote: str, pool: Json | None = None) -> AsyncIterator[Fleet]:
    """A manager that is the worker `local`, too, and others.

    Args:
        mapping: what the MultiKueueCluster says of namespaces; None: nothing.
        remote: the other workers.
        pool: the ClusterQueue for copies on the manager.
    """
    fleet = Fleet.of(*remote)
    assert fleet.manager.tokens is not None
    fleet.manager.tokens["local-token"] = "multikueue:local"
    for worker in fleet.workers.values():
        await set_up_queues(DirectClient(worker), {"cpu": "4"})
    fleet.workers["local"] = fleet.manager
    await set_up_queues(fleet.admin, {"cpu": "4"}, [CHECK])
    await fleet.admin.create(NAMESPACE, namespace("local-default"))
    await fleet.admin.create(CLUSTER_QUEUE, pool or cluster_queue({"cpu": "1"}, name=POOL))
    await fleet.admin.create(LOCAL_QUEUE, local_queue("local-default", LOCAL_QUEUE_NAME, POOL))
    await connect_workers(fleet.admin, {name: kubeconfig(name) for name in fleet.workers})
    await say(fleet, mapping)
    async with fleet.kueues(RunnerOptions(minimum=40.0, maximum=40.0)):
        yield fleet


async def say(fleet: Fleet, mapping: object) -> None:
    patch = {"metadata": {"annotations": {NAMESPACES_ANNOTATION: None if mapping is None else json.dumps(mapping)}}}
    await fleet.admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", "local"), patch)


async def local_copies(fleet: Fleet) -> list[Json]:
    found = [one for kind in (WORKLOAD, JOB) for one in (await fleet.admin.list(kind)).items]
    return [one for one in found if ORIGIN_LABEL in labels_of(one)]


async def original(fleet: Fleet, name: str = "job") -> Json:
    found = (await fleet.admin.list(WORKLOAD, namespace="default")).items
    return next((one for one in found if one["metadata"]["ownerReferences"][0]["name"] == name), {})


async def test_without_names_of_its_own_it_is_refused_and_nothing_is_offered() -> None:
    async with fleet_of(None) as fleet, fleet.running():
        await until(is_active(fleet, "local", "False"))
        told = await fleet.active("local")
        assert (told["reason"], NAMESPACES_ANNOTATION in told["message"]) == ("UnusableNames", True)
        await fleet.submit()
        await anyio.sleep(60)
        assert not await local_copies(fleet)
        await say(fleet, APART)
        await until(is_active(fleet, "local"))
        await until(lambda: _ended(fleet))


async def _ended(fleet: Fleet, name: str = "job") -> bool:
    return is_finished(await original(fleet, name))


async def test_a_job_runs_on_the_manager_and_its_copy_is_nobodys_job() -> None:
    async with fleet_of(APART) as fleet, fleet.running() as manager:
        await fleet.submit()
        await until(lambda: _runs(fleet))
        copies = await local_copies(fleet)
        assert {one["metadata"]["namespace"] for one in copies} == {"local-default"}
        assert fleet.requests("local", "get", NAMESPACE) == 2  # one for each side
        assert {name for name, _, _ in manager.cluster.counts()} == {"local"}
        await until(lambda: _ended(fleet))
        await until(lambda: _is_clean(fleet))
        assert fleet.requests("local", "create", JOB) == 1


async def _runs(fleet: Fleet, name: str = "job", worker: str = "local") -> bool:
    found = await original(fleet, name)
    return cluster_name(found) == worker and (check(found, CHECK) or {}).get("state") == "Ready"


async def _is_clean(fleet: Fleet) -> bool:
    return not await local_copies(fleet)
