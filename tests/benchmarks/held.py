"""`python -m tests.benchmarks.held`: the CPU that held Workloads cost while queues of workers change every second.

On a virtual clock, so that only CPU time counts, and it can be measured beside other work. The API servers are in this
process: what their part of it costs without a manager is measured as well.
"""

from __future__ import annotations

import gc
import time
from typing import Final
from unittest import mock

import anyio
import attrs
import click
import orjson

from multikueue.core.model.names import Json, ObjectKey
from multikueue.runtime.manager import Manager
from multikueue.runtime.reconcilers.snapshot_reader import SnapshotReader
from multikueue.runtime.scored.dispatcher import ScoredDispatcher
from tests.benchmarks.answering import quiet
from tests.benchmarks.machine import machine
from tests.core.door import Snapshot
from tests.runtime.fleet import Fleet
from tests.runtime.held import CPU, hold, use
from tests.simulation.virtual_time import VirtualLoop

SECONDS: Final = 60
"""Virtual ones for which queues change."""
_FULL: Final = 1000 * CPU


@click.command()
@click.option("--held", type=click.IntRange(1), default=10_000, show_default=True, help="Workloads.")
@click.option("--workers", type=click.IntRange(1), default=20, show_default=True, help="Worker clusters.")
def main(held: int, workers: int) -> None:
    """Print which share of a core it is, and how many decisions were made."""
    quiet()
    figures = anyio.run(_measure, held, workers, backend_options={"loop_factory": VirtualLoop})
    click.echo(orjson.dumps(figures).decode())


async def _measure(held: int, workers: int) -> Json:
    fleet, read = Fleet.of(*(f"worker{number}" for number in range(1, workers + 1))), SnapshotReader.read
    decided = list[ObjectKey]()

    def counted(reader: SnapshotReader, key: ObjectKey) -> Snapshot:
        decided.append(key)
        return read(reader, key)

    await hold(fleet, held)
    servers = await _cpu_of_changes(fleet)
    with mock.patch.object(SnapshotReader, "read", counted):
        async with fleet.running(attrs.evolve(fleet.build(), dispatcher=ScoredDispatcher())) as manager:
            await _settled(manager, decided)
            decided.clear()
            share = await _cpu_of_changes(fleet)
    return {
        "scenario": "held",
        "held": held,
        "workers": workers,
        "changes": SECONDS * workers,
        "decisions": len(decided),
        "cpu_percent": {"all": share, "servers": servers, "manager": round(share - servers, 2)},
        "machine": machine(),
    }


async def _settled(manager: Manager, decided: list[ObjectKey]) -> None:
    """Until nothing is decided any more: a round that looks for garbage takes a while."""
    before = -1
    while len(decided) != before or not manager.idle:
        before = len(decided)
        await anyio.sleep(15)


async def _cpu_of_changes(fleet: Fleet) -> float:
    """The share of a core, in percent, while each queue changes once a second; none makes room."""
    gc.collect()
    began = time.process_time()
    for second in range(SECONDS):
        for name in fleet.workers:
            await use(fleet, name, _FULL - 10 * (second % 90))
        await anyio.sleep(1)
    return round(100 * (time.process_time() - began) / SECONDS, 2)


if __name__ == "__main__":
    main()
