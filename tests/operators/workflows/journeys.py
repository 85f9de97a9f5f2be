"""Ways of kinds whose controllers stop nothing that runs: what has begun ends, and nothing more begins."""

from __future__ import annotations

from multikueue.core.model.names import ObjectKey
from multikueue.sandbox.kueue import evict
from tests.operators.ground import OperatorsGround
from tests.operators.journeys import Row, nothing_left, runs


async def drains(ground: OperatorsGround, row: Row) -> None:
    """A worker that takes the quota back keeps it until what runs there has ended; then all of it runs on the other."""
    kind, name = row.case.kind, row.job("drains")
    await ground.queue_on(name, "worker1")
    await ground.submit(kind, name, queue=name, duration="10s")
    assert await runs(ground, row, name) == "worker1"
    (workload,) = ground.workloads_of(kind, name)
    await ground.open_queue("worker2", name)
    await ground.close_queue("worker1", name)
    await evict(ground.workers["worker1"].client, ObjectKey.of(workload))
    (shown,) = await ground.ended(kind, name, "Succeeded")
    await ground.cleaned(kind, name)
    assert ground.workers["worker2"].showed(kind.resource, name, shown["status"])
    made = row.made(ground, name)
    assert made == {"worker1": row.pods, "worker2": row.until_end}, made
    await nothing_left(ground, row, name)
