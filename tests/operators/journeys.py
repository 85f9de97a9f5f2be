"""Journeys that need a controller of the kind's own: what its pods do, and what becomes of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import attrs

from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, uid
from multikueue.sandbox.kueue import evict
from tests.integration.view import POD
from tests.kinds.cases import Case
from tests.operators.ground import OperatorsGround


@attrs.frozen(kw_only=True)
class Row:
    """A kind, and what its controller makes of one run of the example."""

    case: Case
    pods: int
    """How many pods there are while it runs."""
    robust: Json | None = None
    """Fields of a spec that survives a killed pod; None where none does."""
    more: tuple[Callable[[OperatorsGround, Row], Awaitable[None]], ...] = ()
    """Ways of this kind alone."""

    def job(self, way: str) -> str:
        """The name of a journey's job."""
        return f"{self.case.name}-{way}"


async def fails(ground: OperatorsGround, row: Row) -> None:
    """A job whose pods fail has failed on the manager, as its controller says it; it is not tried elsewhere."""
    kind, name = row.case.kind, row.job("fails")
    await ground.submit(kind, name, fails=True)
    (shown,) = await ground.ended(kind, name, "Failed")
    (worker,) = ground.ran_on(kind, name)
    await ground.cleaned(kind, name)
    assert shown["status"] == ground.workers[worker].last[kind.resource, name]["status"]
    assert set(ground.pods_made(name)) == {worker}
    await _nothing_left(ground, row, name)


async def deleted(ground: OperatorsGround, row: Row) -> None:
    """What is deleted on the manager goes with its pods, and whatever its controller has made of it."""
    kind, name = row.case.kind, row.job("deleted")
    jobs = await ground.submit(kind, name, duration="1h")
    worker = await _runs(ground, row, name)
    await ground.delete(kind, jobs)
    await ground.cleaned(kind, name)
    await ground.gone(kind, name)
    assert ground.pods_made(name) == {worker: row.pods}
    await _nothing_left(ground, row, name)


async def moves(ground: OperatorsGround, row: Row) -> None:
    """A worker that takes the quota back stops the job; it runs once more on the other one, and its first pods are gone."""
    kind, name = row.case.kind, row.job("moves")
    jobs = await ground.submit(kind, name, duration="1h")
    first = await _runs(ground, row, name)
    (other,) = {*ground.workers} - {first}
    (workload,) = ground.workloads_of(kind, name)
    await ground.queue_closed(first)
    await evict(ground.workers[first].client, ObjectKey.of(workload))

    await ground.until(
        lambda: len(ground.running_pods(other, name)) == row.pods and not ground.pods(first, name),
        lambda: ground.story(kind, name),
    )
    await ground.queue_opened(first)
    assert await ground.running(kind, name) == other
    assert ground.pods_made(name) == {first: row.pods, other: row.pods}
    await ground.delete(kind, jobs)
    await ground.cleaned(kind, name)
    await _nothing_left(ground, row, name)


async def pauses(ground: OperatorsGround, row: Row) -> None:
    """A Workload that a user deactivates stops on its worker, without a pod; activated again, it runs once more."""
    kind, name = row.case.kind, row.job("pauses")
    jobs = await ground.submit(kind, name, duration="1h")
    first = await _runs(ground, row, name)
    await _set_active(ground, row, name, False)
    await ground.cleaned(kind, name)
    await _nothing_left(ground, row, name)
    await _set_active(ground, row, name, True)
    await _runs(ground, row, name)
    made = ground.pods_made(name)
    assert sum(made.values()) == 2 * row.pods, made
    assert first in made
    await ground.delete(kind, jobs)
    await ground.cleaned(kind, name)
    await _nothing_left(ground, row, name)


async def loses_a_pod(ground: OperatorsGround, row: Row) -> None:
    """A pod that dies is its controller's matter: the job goes on where it is, and its end is shown."""
    kind, name = row.case.kind, row.job("hurt")
    await ground.submit(kind, name, duration="8s", spec=row.robust)
    worker = await _runs(ground, row, name)
    before = {uid(pod) for pod in ground.pods(worker, name)}
    ground.kubelets[worker].kill(ground.pods(worker, name)[-1])
    await ground.until(
        lambda: {uid(pod) for pod in ground.running_pods(worker, name)} - before, lambda: ground.story(kind, name)
    )
    if kind.course.ends:
        (shown,) = await ground.ended(kind, name, "Succeeded")
        await ground.cleaned(kind, name)
        assert shown["status"] == ground.workers[worker].last[kind.resource, name]["status"]
    else:
        await ground.running(kind, name)
        await ground.delete(kind, ground.jobs(ground.manager, kind, name))
        await ground.cleaned(kind, name)
    assert set(ground.pods_made(name)) == {worker}
    assert ground.ran_on(kind, name) == [worker]
    await _nothing_left(ground, row, name)


async def survives_a_lost_worker(ground: OperatorsGround, row: Row) -> None:
    """A worker that is away for a while keeps its job: it runs on there, once, and is shown to end when it is back."""
    kind, name = row.case.kind, row.job("lost")
    jobs = await ground.submit(kind, name, duration="12s")
    worker = await _runs(ground, row, name)
    (plane,) = (plane for plane in ground.planes.all if plane.name == worker)
    await plane.kill_apiserver()
    await ground.until(
        lambda: not is_true(ground.manager.get(MULTIKUEUE_CLUSTER, worker) or {}, "Active"),
        lambda: ground.manager.get(MULTIKUEUE_CLUSTER, worker),
    )
    await plane.start_apiserver()
    if kind.course.ends:
        (shown,) = await ground.ended(kind, name, "Succeeded")
        assert shown["status"] == ground.workers[worker].last[kind.resource, name]["status"]
    else:
        await ground.running(kind, name)
        await ground.delete(kind, jobs)
    await ground.cleaned(kind, name)
    assert ground.pods_made(name) == {worker: row.pods}
    await _nothing_left(ground, row, name)


async def _runs(ground: OperatorsGround, row: Row, name: str) -> str:
    """Wait until the manager shows that a job runs, and all its pods do; return where."""
    worker = await ground.running(row.case.kind, name)
    await ground.until(
        lambda: len(ground.running_pods(worker, name)) == row.pods, lambda: ground.story(row.case.kind, name)
    )
    return worker


async def _set_active(ground: OperatorsGround, row: Row, name: str, active: bool) -> None:
    (workload,) = ground.workloads_of(row.case.kind, name)
    await ground.manager.client.merge_patch(WORKLOAD, ObjectKey.of(workload), {"spec": {"active": active}})


async def _nothing_left(ground: OperatorsGround, row: Row, name: str) -> None:
    """Wait until no worker has anything with the job's name, and see that the manager never had a pod of it."""

    def left() -> list[Any]:
        return [
            (cluster.name, resource.plural, own)
            for cluster in ground.workers.values()
            for (resource, own) in cluster.now
            if own.startswith(name) and resource != WORKLOAD
        ]

    await ground.until(lambda: not left(), lambda: (left(), ground.story(row.case.kind, name)))
    on_manager = [
        own for resource, own in ground.manager.last if own.startswith(name) and resource in (POD, *ground.children)
    ]
    assert on_manager == [], "the manager's own controller ran it"
    assert dig(ground.manager.get(row.case.kind.resource, name), "metadata", "ownerReferences") is None


COMMON = (fails, deleted, moves, pauses, loses_a_pod)
"""Ways that go at the same time. A lost worker is lost to all."""
