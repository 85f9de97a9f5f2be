"""`python -m tests.benchmarks.deciding`: the CPU time of a snapshot and of a plan, on caches that are full.

No request is timed, and only this process's own CPU time counts, so it can be measured beside other work: the best of
many rounds.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Final

import anyio
import click
import orjson

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.runtime.manager import Manager
from multikueue.runtime.reconcilers.workload import WorkloadReconciler
from tests.benchmarks.answering import quiet
from tests.benchmarks.machine import machine
from tests.core.door import guarded_plan
from tests.runtime.fleet import Fleet, now

JOBS: Final = 20
ROUNDS: Final = 40


@click.command()
@click.option("--workers", type=click.IntRange(1), default=3, show_default=True, help="Worker clusters.")
def main(workers: int) -> None:
    """Print how long decisions take: of Workloads that are offered to all workers, and of those that run on one."""
    quiet()
    click.echo(orjson.dumps(anyio.run(_measure, workers)).decode())


async def _measure(workers: int) -> Json:
    cpu_us = {
        "offered": await _decisions(workers, cpu=0, until="nominatedClusterNames"),
        "running": await _decisions(workers, cpu=JOBS, until="clusterName"),
    }
    return {"scenario": "deciding", "workers": workers, "jobs": JOBS, "cpu_us": cpu_us, "machine": machine()}


async def _decisions(workers: int, *, cpu: int, until: str) -> Json:
    """Microseconds of CPU for one Workload.

    Args:
        workers: how many there are.
        cpu: of each worker: with none, nothing is admitted there.
        until: a field of each Workload's status that is waited for.
    """
    fleet = await Fleet.connected(*(f"worker{number}" for number in range(1, workers + 1)), cpu=cpu, on_manager=JOBS)
    async with fleet.kueues(), fleet.running() as manager:
        for number in range(JOBS):
            await fleet.submit(f"job-{number}")
        keys = await _settled(fleet, manager, until)
        return _timed(manager, keys)


async def _settled(fleet: Fleet, manager: Manager, field: str) -> list[ObjectKey]:
    while True:
        await anyio.sleep(0.1)
        workloads = (await fleet.admin.list(WORKLOAD)).items
        if (
            len(workloads) == JOBS
            and manager.idle
            and all((workload.get("status") or {}).get(field) for workload in workloads)
        ):
            return [ObjectKey.of(workload) for workload in workloads]


def _timed(manager: Manager, keys: list[ObjectKey]) -> Json:
    reconciler = manager._controllers[0].reconciler
    assert isinstance(reconciler, WorkloadReconciler)
    read, moment, settings = reconciler.reader.read, now(), reconciler.settings
    snapshots = [read(key) for key in keys]
    gc.disable()
    return {
        "snapshot": _best(lambda: [read(key) for key in keys]),
        "plan": _best(
            lambda: [guarded_plan(snapshot, moment, settings, reconciler.dispatcher) for snapshot in snapshots]
        ),
    }


def _best(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return round(best / JOBS * 1e6, 1)


if __name__ == "__main__":
    main()
