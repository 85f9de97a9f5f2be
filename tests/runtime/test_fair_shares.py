"""A worker that floods the daemon, or a tenant with many Workloads, delays nobody else by more than a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import anyio
import attrs
import pytest

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.runtime.workers.executor import UNKNOWN_SHARE
from multikueue.sandbox.apiserver import ApiServer, Delay, DirectClient, Hang, Match
from tests.runtime.fleet import Fleet, is_active, until

pytestmark = pytest.mark.looptime

INVENTED = 1_000
DELETES = Match(verbs=("delete", "patch"), user="multikueue")


@attrs.define
class Counted:
    """A `ControllerHook` that counts reconciles of Workloads."""

    reconciles: int = 0

    def reconciled(self, controller: str, seconds: float, error: Exception | None) -> None:
        del seconds, error
        self.reconciles += controller == "multikueue_workload"


def invented(number: int) -> Json:
    """A Workload that names us, as a tenant of a worker may write it."""
    return {
        "apiVersion": WORKLOAD.gvk.api_version,
        "kind": WORKLOAD.gvk.kind,
        "metadata": {"name": f"invented-{number}", "namespace": "default", "labels": {ORIGIN_LABEL: "multikueue"}},
        "spec": {"podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": []}}}]},
    }


def flood(worker: ApiServer, workloads: int = INVENTED) -> None:
    """Invent Workloads on a worker, all at once."""
    for number in range(workloads):
        worker.registry.create_object(invented(number))


def when(server: ApiServer, holds: Callable[[Json], bool], act: Callable[[], Any]) -> None:
    """Act as soon as a Workload of ours on a cluster is as wanted, in the very write."""

    def changed(row: Any, _old: Json | None, new: Json | None) -> None:
        ours = row.plural == WORKLOAD.plural and new is not None and "invented" not in new["metadata"]["name"]
        if ours and new is not None and holds(new):
            act()

    server.registry.cluster.listeners.append(changed)


@pytest.mark.gate
async def test_a_worker_that_invents_workloads_and_hangs_on_deletes_has_few_tasks_and_delays_nobody() -> None:
    """It was a task for each: 29,502, and seconds until another worker's job was offered."""
    fleet, counted = Fleet.of("worker1", "worker2"), Counted()
    await fleet.connect()
    manager = attrs.evolve(fleet.build(), controller_hook=counted)
    begun: list[int] = []
    offered: list[int] = []
    async with fleet.kueues(), fleet.dispatching(manager):
        before = len(asyncio.all_tasks())
        fleet.workers["worker1"].faults.add(Hang(), on=DELETES)

        def begin() -> None:
            if not begun:
                begun.append(counted.reconciles)
                flood(fleet.workers["worker1"])

        when(fleet.manager, lambda new: "admission" in (new.get("status") or {}), begin)
        when(fleet.workers["worker2"], lambda _: True, lambda: offered.append(counted.reconciles))
        await fleet.submit()
        await until(lambda: offered)
        assert offered[0] - begun[0] < 200, "namespaces and workers take turns"

        await anyio.sleep(5.0)
        assert manager._executor.in_flight_on(ClusterName("worker1")) == UNKNOWN_SHARE
        assert len(asyncio.all_tasks()) < before + 2 * UNKNOWN_SHARE


async def test_what_found_no_place_is_done_when_there_is_room() -> None:
    """Nothing is forgotten: all invented Workloads are removed once deletes are answered again."""
    fleet = await Fleet.connected("worker1")
    async with fleet.dispatching(fleet.build(gc_interval=timedelta(0))) as manager:
        fault = fleet.workers["worker1"].faults.add(Delay(20.0), on=DELETES)
        flood(fleet.workers["worker1"], 300)
        await anyio.sleep(5.0)
        assert manager._executor.in_flight_on(ClusterName("worker1")) == UNKNOWN_SHARE
        fleet.workers["worker1"].faults.remove(fault)
        await anyio.sleep(60.0)
        assert not (await DirectClient(fleet.workers["worker1"]).list(WORKLOAD)).items
        assert manager._executor.waiting == 0


async def test_a_namespace_with_thousands_of_workloads_delays_another_by_a_turn() -> None:
    fleet, counted = Fleet.of("worker1"), Counted()
    await fleet.connect()
    manager = attrs.evolve(fleet.build(), controller_hook=counted)
    begun: list[int] = []
    offered: list[int] = []
    async with fleet.kueues(), fleet.running(manager):
        await until(is_active(fleet))

        def begin() -> None:
            if not begun:
                begun.append(counted.reconciles)
                for number in range(2_000):
                    manager._from_workers.work.workloads.enqueue(ObjectKey("big", f"workload-{number}"))

        when(fleet.manager, lambda new: "admission" in (new.get("status") or {}), begin)
        when(fleet.workers["worker1"], lambda _: True, lambda: offered.append(counted.reconciles))
        await fleet.submit()
        await until(lambda: offered)

    assert offered[0] - begun[0] < 200


@pytest.mark.gate
async def test_after_a_restart_a_new_job_does_not_wait_for_a_look_at_all_that_run() -> None:
    """Workers are read while the manager's jobs are, so that it can be offered at once."""
    fleet, counted = Fleet.of("worker1"), Counted()
    await fleet.connect(cpu=100)
    async with fleet.kueues():
        async with fleet.running():
            for number in range(40):
                await fleet.submit(f"job-{number:02}")
            await anyio.sleep(20.0)
        await fleet.submit("new")
        fleet.manager.faults.add(Delay(5.0), on=Match(verbs=("list",), resource="jobs", user="multikueue"))
        offered: list[int] = []
        when(fleet.workers["worker1"], lambda _: True, lambda: offered.append(counted.reconciles))
        async with fleet.running(attrs.evolve(fleet.build(concurrency=1), controller_hook=counted)):
            await until(lambda: offered)
            await anyio.sleep(20.0)

    assert offered[0] < 10
    assert counted.reconciles >= 41
