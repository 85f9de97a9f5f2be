"""Open both servers and run seeds until there are enough operations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs

from tests.conformance.client import ConformanceClient, connected
from tests.conformance.fuzz.running import Report, compare
from tests.conformance.planes import real_without_controllers, sandbox


@attrs.frozen
class Plan:
    """What to run.

    Attributes:
        seed: the first one.
        operations: run further seeds until there are so many.
        seeds: or so many seeds, if not None.
        length: operations of a seed.
        managers: compare managedFields too.
    """

    seed: int = 0
    operations: int = 2_000
    seeds: int | None = None
    length: int = 50
    managers: bool = True


@asynccontextmanager
async def servers() -> AsyncIterator[tuple[ConformanceClient, ConformanceClient]]:
    """A real API server and the sandbox's, both without controllers, so that only the fuzz writes."""
    async with (
        real_without_controllers() as real_plane,
        sandbox(garbage_collection=False) as sandbox_plane,
        connected(real_plane) as real,
        connected(sandbox_plane) as emulated,
    ):
        yield real, emulated


@asynccontextmanager
async def same_servers() -> AsyncIterator[tuple[ConformanceClient, ConformanceClient]]:
    """The sandbox's API server twice."""
    async with (
        sandbox(garbage_collection=False) as left,
        sandbox(garbage_collection=False) as right,
        connected(left) as first,
        connected(right) as other,
    ):
        yield first, other


async def fuzz(plan: Plan) -> Report:
    """Compare the servers."""
    report = Report()
    async with servers() as (real, emulated):
        while not _is_enough(plan, report):
            seed = plan.seed + report.seeds
            await compare(real, emulated, report, seed, length=plan.length, managers=plan.managers)
    return report


def _is_enough(plan: Plan, report: Report) -> bool:
    if plan.seeds is not None:
        return report.seeds >= plan.seeds
    return report.operations >= plan.operations
