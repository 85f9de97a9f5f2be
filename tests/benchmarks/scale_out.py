"""`python -m tests.benchmarks.scale_out CPU_MS`: several active replicas, simulated with what a workload costs one.

Nothing is run and nothing is timed: queues of CPU work, on numbers drawn from a seed. What a replica is given to do:

* *Own work*, for the Workloads of its shards: requests, decisions, and the events that belong to them.
* *Others' events*: whatever a watch brings of Workloads of other replicas. Without a label of the shard on the copies
  that is everything; with it only what the manager sends, whose Workloads are made by Kueue and carry no label of ours.

A replica works on one thing at a time: Python uses one core.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs
import click
import orjson

from multikueue.core.model.names import Json

SHARDS: Final = 32
SEED: Final = 1
SECONDS: Final = 60.0
STEPS: Final = 9
"""Pieces that the work for one Workload comes in, about as many as decisions are made."""
SPREAD: Final = 2.0
"""Seconds over which these are spread."""
EVENTS: Final = 0.23
"""Share of a Workload's CPU that goes into events: watches, caches and handlers (profile of a burst, see the page)."""
FROM_MANAGER: Final = 0.4
"""Of the events of a Workload, those that the manager sends: 10 of 25 with three workers."""
LATE: Final = 0.1
"""Seconds that the 99th percentile of the waits may be: more counts as overload."""


@attrs.frozen
class Cost:
    """CPU seconds for one Workload, from its creation to its end."""

    own: float
    """Of the replica that has it."""
    others: float
    """Of each other replica, for events that do not concern it."""


@attrs.frozen
class Outcome:
    """How long work waits for the replica that is to do it."""

    p50: float
    p99: float
    busiest: float
    """Share of its core that the busiest replica uses."""


def cost(cpu: float, *, labelled: bool) -> Cost:
    """What one Workload costs.

    Args:
        cpu: seconds of a single process for a Workload, all events included.
        labelled: whether copies carry their shard, so that workers send each replica its own only.
    """
    return Cost(cpu, cpu * EVENTS * (FROM_MANAGER if labelled else 1.0))


def owners(replicas: int, randomness: random.Random) -> list[int]:
    """Which replica has each shard: as even as can be, which replica has one more being chance."""
    dealt = [shard % replicas for shard in range(SHARDS)]
    randomness.shuffle(dealt)
    return dealt


def simulate(rate: float, replicas: int, each: Cost, seed: int = SEED) -> Outcome:
    """Have Workloads come at this rate for a minute.

    Args:
        rate: Workloads a second; they come at random.
        replicas: how many are active.
        each: what a Workload costs.
        seed: of all chance.
    """
    randomness = random.Random(seed)
    shard_of = owners(replicas, randomness)
    waits: list[float] = []
    busy, free_at = [0.0] * replicas, [0.0] * replicas
    for arrived, shard in _pieces(rate, randomness):
        for replica in range(replicas):
            mine = shard_of[shard] == replica
            taken = (each.own if mine else each.others) / STEPS
            begun = max(arrived, free_at[replica])
            free_at[replica] = begun + taken
            busy[replica] += taken
            if mine:
                waits.append(begun - arrived)
    waits.sort()
    return Outcome(_at(waits, 0.5), _at(waits, 0.99), max(busy) / (SECONDS + SPREAD))


def _pieces(rate: float, randomness: random.Random) -> Iterator[tuple[float, int]]:
    """When pieces of work come, in the order of time, and for which shard."""
    waiting: list[tuple[float, int]] = []
    now = 0.0
    while (now := now + randomness.expovariate(rate)) < SECONDS:
        while waiting and waiting[0][0] <= now:
            yield heapq.heappop(waiting)
        shard = randomness.randrange(SHARDS)
        for _ in range(STEPS):
            heapq.heappush(waiting, (now + randomness.uniform(0.0, SPREAD), shard))
    while waiting:
        yield heapq.heappop(waiting)


def _at(values: Sequence[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def capacity(replicas: int, each: Cost) -> int:
    """The highest whole rate at which work does not wait too long."""
    low, high = 1, 2
    while simulate(high, replicas, each).p99 <= LATE:
        low, high = high, high * 2
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        low, high = (middle, high) if simulate(middle, replicas, each).p99 <= LATE else (low, middle)
    return low


def figures(cpu: float) -> list[Json]:
    """For 1 to 8 replicas: what they can do, with the shard on the copies and without."""
    rows = []
    for replicas in (1, 2, 4, 8):
        row: Json = {"replicas": replicas}
        for name, labelled in (("unlabelled", False), ("labelled", True)):
            each = cost(cpu, labelled=labelled)
            rate = capacity(replicas, each)
            row[name] = {"per_s": rate, "busiest": round(simulate(rate, replicas, each).busiest, 2)}
        rows.append(row)
    return rows


@click.command()
@click.argument("cpu_ms", type=click.FloatRange(0.1))
@click.option("--output", type=click.Path(path_type=Path), help="Write the result into this file.")
def main(cpu_ms: float, output: Path | None) -> None:
    """Print what replicas can do, if one Workload costs a process CPU_MS milliseconds."""
    result = {
        "scenario": "scale-out",
        "cpu_ms_per_workload": cpu_ms,
        "shards": SHARDS,
        "events_share": EVENTS,
        "from_manager": FROM_MANAGER,
        "seed": SEED,
        "figures": figures(cpu_ms / 1000),
    }
    text = orjson.dumps(result, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    click.echo(text.decode(), nl=False)
    if output is not None:
        output.write_bytes(text)


if __name__ == "__main__":
    main()
