"""The sandbox answers random operations as a real API server does."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.conformance.fuzz.fuzzing import Plan, fuzz, same_servers
from tests.conformance.fuzz.running import Report, compare
from tests.controlplane.provider import PROCESSES, choose_or_report

SEED = int(os.environ.get("MULTIKUEUE_FUZZ_SEED", "0"))
ALLOWED = 0.005  # of the operations, besides the known differences


@pytest.fixture
def processes() -> None:
    """The fuzz starts child processes whatever provider was asked for: it needs a server without controllers."""
    choose_or_report(PROCESSES)


@pytest.mark.real
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("processes")
async def test_random_operations_are_answered_alike(record_property: Callable[[str, object], None]) -> None:
    """Codes, reasons, causes, bodies, field managers, versions and watch events of 2,000 operations are the same."""
    report = await fuzz(Plan(seed=SEED))
    record_property("fuzz", report.summary())
    assert report.operations >= 2_000
    assert report.share <= ALLOWED, "\n".join([report.summary(), *map(str, report.unknown[:5])])


async def test_the_comparison_finds_nothing_where_there_is_nothing() -> None:
    """Two sandboxes answer alike: what is different on any two servers is not taken for a difference."""
    report = Report()
    async with same_servers() as (first, other):
        for seed in range(SEED, SEED + 4):
            await compare(first, other, report, seed, length=50, managers=True)
    assert report.operations == 200
    assert report.events > 0
    assert report.differences == []
