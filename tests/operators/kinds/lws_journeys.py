"""Ways of a LeaderWorkerSet alone: it gets more groups while it runs, and fewer."""

from __future__ import annotations

from typing import Final

from multikueue.core.model.objects import dig, name_of, uid
from multikueue.core.model.workloads import cluster_name
from tests.operators.ground import OperatorsGround
from tests.operators.journeys import Row, nothing_left, runs

_REPLICAS: Final = ("spec", "replicas")
_SIZE: Final = 2
"""Pods of a group: a leader and a worker."""


async def grows_and_shrinks(ground: OperatorsGround, row: Row) -> None:
    """Added groups run on the worker that has the others, each with a Workload; removed ones give theirs up.

    The copy is not made anew for that, and neither is a pod of a group that stays.
    """
    kind, name = row.case.kind, row.job("scaled")
    jobs = await ground.submit(kind, name, duration="1h")
    worker = await runs(ground, row, name)
    (copy,) = ground.jobs(ground.workers[worker], kind, name)
    first = _pods(ground, worker, name)
    grown = await _scaled(ground, row, worker, 3)
    assert first.items() < grown.items()
    shrunk = await _scaled(ground, row, worker, 1)
    assert shrunk.items() < first.items()
    assert sorted(shrunk) == [f"{name}-0", f"{name}-0-1"]
    again = await _scaled(ground, row, worker, 2)
    assert shrunk.items() < again.items()

    assert ground.workers[worker].uids[kind.resource, name] == {uid(copy)}
    assert ground.ran_on(kind, name) == [worker]
    assert ground.pods_run(name) == {worker: len(grown) + _SIZE}
    await ground.delete(kind, jobs)
    await ground.cleaned(kind, name)
    await ground.gone(kind, name)
    await nothing_left(ground, row, name)


def _pods(ground: OperatorsGround, worker: str, name: str) -> dict[str, str]:
    return {name_of(pod): uid(pod) for pod in ground.running_pods(worker, name)}


async def _scaled(ground: OperatorsGround, row: Row, worker: str, groups: int) -> dict[str, str]:
    """Give the manager's set so many groups; return the pods once they are all that there is, and all of them run."""
    kind, name = row.case.kind, row.job("scaled")
    await ground.resize(kind, name, _REPLICAS, groups)

    def look() -> dict[str, str] | None:
        shown = _pods(ground, worker, name)
        workloads = [cluster_name(workload) for workload in ground.workloads_of(kind, name)]
        (copy,) = ground.jobs(ground.workers[worker], kind, name)
        whole = len(shown) == len(ground.pods(worker, name)) == groups * _SIZE
        so = workloads == [worker] * groups and dig(copy, "status", "readyReplicas") == groups
        return shown if whole and so else None

    return await ground.until(look, lambda: ground.story(kind, name))
