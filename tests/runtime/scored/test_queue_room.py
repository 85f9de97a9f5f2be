"""Which waiting Workloads count against the room on workers, and for how long."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import anyio
import attrs
import pytest
from structlog.testing import capture_logs

from multikueue.core.dispatchers.dispatcher import Known
from multikueue.core.dispatchers.scored import kueue_objects
from multikueue.core.dispatchers.scored.entries import Entry
from multikueue.core.dispatchers.scored.facts import PodSet, ResourceRequest
from multikueue.core.dispatchers.scored.profile import Profile
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.runtime.controller import KeyQueue, Process
from multikueue.runtime.parts import PartHost
from multikueue.runtime.scored import queue_room
from multikueue.runtime.scored.dispatcher import ScoredDispatcher
from multikueue.runtime.scored.queue_room import SHOWN_AFTER, WorkerRooms
from tests.core.building import condition, workload
from tests.runtime.fleet import Fleet, now

pytestmark = pytest.mark.looptime

KEY = ObjectKey("default", "wl")
AT = datetime(2026, 1, 1, tzinfo=UTC)
CLAIM = Entry(KEY, "uid", "cq", 0, AT, AT, ResourceRequest(()), ((ClusterName("worker1"), "queue"),))


def rooms() -> WorkerRooms:
    """Of a manager without workers."""
    manager = Fleet.of().build()
    return WorkerRooms(PartHost(manager.cluster, manager.workers, KeyQueue(), Process(now, lambda: 0.0, "test")))


async def test_what_a_workload_got_counts_until_figures_show_it() -> None:
    figures = rooms()
    figures.planned(KEY, CLAIM)
    figures.planned(KEY, None)
    await anyio.sleep(SHOWN_AFTER - 0.1)
    figures.look()
    assert KEY in figures.ledger
    await anyio.sleep(0.2)
    figures.look()
    assert KEY not in figures.ledger


async def test_what_an_ended_workload_got_counts_no_more() -> None:
    """Jobs of a second kept their room for three more: a third of the workers' throughput was left."""
    figures = rooms()
    figures.planned(KEY, CLAIM)
    figures.planned(KEY, None)
    ended = started(KEY, now())
    ended["status"]["conditions"].append(condition("Finished"))
    figures.host.manager.workloads.informer.put(KEY, ended)
    figures.planned(KEY, None)
    figures.look()
    assert KEY not in figures.ledger


async def test_it_counts_no_longer_because_it_is_planned_again() -> None:
    """Each change of a running job plans its Workload."""
    figures = rooms()
    figures.planned(KEY, CLAIM)
    for _ in range(3):
        figures.planned(KEY, None)
        await anyio.sleep(SHOWN_AFTER / 2)
    figures.look()
    assert KEY not in figures.ledger


async def test_a_workload_that_waits_again_keeps_its_claim() -> None:
    figures = rooms()
    for claim in (CLAIM, None, attrs.evolve(CLAIM, priority=1)):
        figures.planned(KEY, claim)
    await anyio.sleep(SHOWN_AFTER + 0.1)
    figures.look()
    assert KEY in figures.ledger


def started(key: ObjectKey, reserved: datetime) -> Json:
    """A Workload that a worker has since then."""
    admitted = condition("Admitted", at=timestamp(reserved))
    made = workload(cluster="worker1", check="Ready", reserved_at=timestamp(reserved))
    made["metadata"] |= {"name": key.name, "namespace": key.namespace}
    made["status"]["conditions"].append(admitted)
    return made


@pytest.mark.parametrize(("minutes", "starving"), [(-70, 0), (-50, 1)])
async def test_who_is_held_for_an_hour_while_later_ones_start_is_counted(minutes: int, starving: int) -> None:
    figures, reserved = rooms(), now() - timedelta(hours=1)
    figures.planned(KEY, attrs.evolve(CLAIM, reserved=reserved))
    figures.job_changed(KEY, None, started(ObjectKey("default", "other"), now() + timedelta(minutes=minutes)))

    assert figures.starving() == starving
    figures.planned(KEY, attrs.evolve(CLAIM, reserved=reserved, offered=CLAIM.places))
    assert figures.starving() == 0


async def test_what_a_workers_nodes_had_no_place_for_is_known_to_those_that_come_later() -> None:
    async with read("worker1") as figures:
        worker = ClusterName("worker1")
        name, facts = next(iter((figures._figures[worker].facts or {}).items()))
        request = ResourceRequest((PodSet({"cpu": 1}),))
        figures.planned(KEY, attrs.evolve(CLAIM, request=request, unplaced=((worker, name),)))
        for _ in range(2):  # as noted, and as carried on when the figures are read again
            (facts,) = (figures._figures[worker].facts or {}).values()
            assert not facts.places(request, now())
            assert facts.places(request, now() + timedelta(hours=1))
            figures.changed(worker)
            figures.look()


def pod(scheduled: str, reason: str, at: datetime) -> Json:
    """As the scheduler says it."""
    said = {"type": "PodScheduled", "status": scheduled, "reason": reason, "lastTransitionTime": timestamp(at)}
    return {"status": {"conditions": [said]}}


def show(figures: WorkerRooms, *pods: Json) -> bool:
    """Pods of a job that worker1 has. Returns whether nodes there may have a place for the next of its shape."""
    worker = ClusterName("worker1")
    ((queue, _),) = figures._figures[worker].targets.items()
    made = workload(cluster=worker, check="Ready", spec={"queueName": queue.name})
    figures.placed(made, worker, queue, pods)
    (facts,), request = (figures._figures[worker].facts or {}).values(), kueue_objects.request(made)
    assert request is not None
    return facts.places(request, now())


@pytest.mark.parametrize(("reason", "hangs"), [("Unschedulable", True), ("SchedulingGated", False)])
async def test_pods_that_no_node_has_a_place_for_send_the_next_of_their_shape_elsewhere(
    reason: str, hangs: bool
) -> None:
    async with read("worker1") as figures:
        assert show(figures, pod("False", reason, now())) is not hangs


async def test_pods_that_get_nodes_end_that_and_those_that_had_them_before_do_not() -> None:
    async with read("worker1") as figures:
        running, hanging = pod("True", "", now() - timedelta(minutes=5)), pod("False", "Unschedulable", now())
        assert show(figures, running)
        assert not show(figures, running, hanging)
        assert not show(figures, running)
        await anyio.sleep(2)
        assert show(figures, running, pod("True", "", now()))


def states(figures: WorkerRooms) -> dict[str, Known | None]:
    """Of all workers, whether their figures can be used."""
    return {name: figures.state for name, figures in figures._figures.items()}


@asynccontextmanager
async def read(*workers: str) -> AsyncIterator[WorkerRooms]:
    """Of a manager whose dispatcher looks at the figures of these workers."""
    fleet = await Fleet.connected(*workers)
    manager = attrs.evolve(fleet.build(), dispatcher=ScoredDispatcher({"default": Profile()}))
    async with fleet.dispatching(manager):
        await anyio.sleep(5)
        figures = manager._dispatching.figures
        assert isinstance(figures, WorkerRooms)
        assert {*states(figures).values()} == {Known.YES}
        yield figures


async def test_what_is_odd_about_a_workers_figures_costs_them_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended the leader."""
    async with read("worker1", "worker2") as figures:
        tree, read_of = kueue_objects.tree, list[str]()

        def odd(queues: Iterable[Json], *rest: Any) -> Any:
            read_of.append("worker1")
            if len(read_of) == 1:
                raise ZeroDivisionError
            return tree(queues, *rest)

        monkeypatch.setattr(kueue_objects, "tree", odd)
        figures.changed(ClusterName("worker1"))
        with capture_logs() as logged:
            await anyio.sleep(1)
        assert [line["cluster"] for line in logged if line["log_level"] == "error"] == ["worker1"]
        assert states(figures) == {"worker1": Known.ODD, "worker2": Known.YES}
        figures.changed(ClusterName("worker1"))
        await anyio.sleep(1)
        assert {*states(figures).values()} == {Known.YES}


async def test_a_watch_that_comes_and_goes_has_many_figures_read_no_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    async with read("worker1") as figures:
        informers = figures.host.workers.get("worker1")
        assert informers is not None
        assert informers.known is not None
        queues, looks = informers.known.queues.cluster_queues, Mock(wraps=kueue_objects.tree)
        monkeypatch.setattr(queue_room, "RATE", 1)
        monkeypatch.setattr(kueue_objects, "tree", looks)
        for number in range(100):
            queues.status = attrs.evolve(queues.status, refused=bool(number % 2))
            figures.changed(ClusterName("worker1"))
            figures.look()
            await anyio.sleep(0.1)
        assert looks.call_count < 10
