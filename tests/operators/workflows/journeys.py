"""Ways of kinds whose controllers stop nothing that runs.

Argo ends what has begun, and begins nothing more. Of Tekton's nothing is held once it has begun: its webhook refuses
that, to the worker's Kueue and to the manager's.
"""

from __future__ import annotations

import pytest

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import dig, name_of
from multikueue.core.model.workloads import has_quota, is_evicted
from multikueue.errors import ApiError
from multikueue.sandbox.kueue import evict
from tests.integration.view import POD
from tests.operators.ground import OperatorsGround
from tests.operators.journeys import Row, Way, nothing_left, runs, set_active, shows_the_last


async def drains(ground: OperatorsGround, row: Row) -> None:
    """A worker that takes the quota back keeps it until what runs there has ended; then all of it runs on the other."""
    kind, name = row.case.kind, row.job("drains")
    await _evicted(ground, row, name)
    (shown,) = await ground.ended(kind, name, "Succeeded")
    await ground.cleaned(kind, name)
    assert ground.workers["worker2"].showed(kind.resource, name, shown["status"])
    made = row.made(ground, name)
    assert made == {"worker1": row.pods, "worker2": row.until_end}, made
    await nothing_left(ground, row, name)


async def runs_on_evicted(ground: OperatorsGround, row: Row) -> None:
    """A worker that takes the quota back has it when the run has ended: all of it, there, and once."""
    name = row.job("held-late")
    await _evicted(ground, row, name)
    await _ends_where_it_is(ground, row, name, "worker1")


async def runs_on_deactivated(ground: OperatorsGround, row: Row) -> None:
    """A Workload that is deactivated while its run goes on keeps its quota: the run ends where it is, and is shown."""
    kind, name = row.case.kind, row.job("inactive")
    await ground.submit(kind, name, duration="10s")
    worker = await runs(ground, row, name)
    for place in ("manager", worker):
        await _cannot_be_held(ground, row, name, place)
    await set_active(ground, row, name, False)
    await _ends_where_it_is(ground, row, name, worker)


async def drains_deactivated(ground: OperatorsGround, row: Row) -> None:
    """A deactivated Workload gives its quota up once the step that runs has ended; activated, its run begins anew."""
    kind, name = row.case.kind, row.job("inactive")
    await ground.submit(kind, name, duration="10s")
    first = await runs(ground, row, name)
    await set_active(ground, row, name, False)
    await ground.cleaned(kind, name)
    assert row.made(ground, name) == {first: row.pods}
    last = ground.workers[first].last.items()
    ended = [dig(pod, "status", "phase") for (of, own), pod in last if of == POD and own.startswith(name)]
    assert ended == ["Succeeded"] * row.pods, ended
    await ground.until(
        lambda: not any(map(has_quota, ground.workloads_of(kind, name))), lambda: ground.story(kind, name)
    )
    await nothing_left(ground, row, name)

    await set_active(ground, row, name, True)
    await ground.ended(kind, name, "Succeeded")
    await ground.cleaned(kind, name)
    assert sum(row.made(ground, name).values()) == row.pods + row.until_end
    await nothing_left(ground, row, name)


def cancelled(**fields: str) -> Way:
    """A way: its user stops a run on the manager by a field of its spec, and it fails at once where it runs."""

    async def cancelled_by_its_user(ground: OperatorsGround, row: Row) -> None:
        kind, name = row.case.kind, row.job("cancelled")
        jobs = await ground.submit(kind, name, duration="1h")
        worker = await runs(ground, row, name)
        await ground.manager.client.merge_patch(kind.resource, ObjectKey.of(jobs[0]), {"spec": fields})
        await ground.ended(kind, name, "Failed")
        await ground.cleaned(kind, name)
        assert row.made(ground, name) == {worker: row.pods}
        await nothing_left(ground, row, name)

    return cancelled_by_its_user


async def _evicted(ground: OperatorsGround, row: Row, name: str) -> None:
    """Have a run begin on `worker1` and lose its quota there; only `worker2` would admit it now."""
    await ground.queue_on(name, "worker1")
    await ground.submit(row.case.kind, name, queue=name, duration="10s")
    assert await runs(ground, row, name) == "worker1"
    (workload,) = ground.workloads_of(row.case.kind, name)
    await ground.open_queue("worker2", name)
    await ground.close_queue("worker1", name)
    await evict(ground.workers["worker1"].client, ObjectKey.of(workload))


async def _cannot_be_held(ground: OperatorsGround, row: Row, name: str, place: str) -> None:
    """See that the controller's webhook refuses what a Kueue writes to stop a run that has begun."""
    (cluster,) = (cluster for cluster in ground.clusters if cluster.name == place)
    kind = row.case.kind
    held = kind.with_suspend(await cluster.client.get(kind.resource, ObjectKey("default", name)), True)
    with pytest.raises(ApiError, match="cannot be Pending after it is started"):
        await cluster.client.merge_patch(kind.resource, ObjectKey("default", name), {"spec": held["spec"]})


async def _ends_where_it_is(ground: OperatorsGround, row: Row, name: str, worker: str) -> None:
    kind = row.case.kind
    (shown,) = await ground.ended(kind, name, "Succeeded")
    await ground.cleaned(kind, name)
    shows_the_last(ground, row, name, shown)
    for place in ("manager", worker):
        _kept_its_quota(ground, row, name, place)
    row.ran_to_its_end(ground, name, worker)
    await nothing_left(ground, row, name)


def _kept_its_quota(ground: OperatorsGround, row: Row, name: str, place: str) -> None:
    """See that a run's Workload on a cluster was evicted, and never lost the quota that it once had."""
    names = {name_of(workload) for workload in ground.workloads_of(row.case.kind, name)}
    history = ground.recorded[place].history
    versions = [obj for of, own, obj in history if of == WORKLOAD and own in names]
    assert any(map(is_evicted, versions))
    had = [has_quota(obj) for obj in versions]
    assert all(had[had.index(True) :])
