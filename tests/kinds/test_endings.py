"""That the journey of endings notices what it is there for."""

from __future__ import annotations

import pytest

from tests.kinds import endings
from tests.kinds.cases import Case, cases, of_each_sort
from tests.kinds.sandbox_ground import sandbox_ground
from tests.simulation.decision_mutations import jobs_are_deleted_in_the_background

pytestmark = pytest.mark.looptime

EACH = [
    pytest.param(case, id=case.name, marks=() if of_each_sort(case) else pytest.mark.gate)
    for case in cases()
    if case.is_copied
]


@pytest.mark.gate
async def test_job_copies_that_are_deleted_in_the_background_are_noticed() -> None:
    """As up to 267d433b: the copy is gone at once, and nothing but its pods tells that it runs."""
    (job,) = (case for case in cases() if case.name == "job")
    with jobs_are_deleted_in_the_background():
        async with sandbox_ground(job) as ground:
            with pytest.raises(AssertionError, match="began while pods of"):
                await endings.is_taken_away(ground, job)


@pytest.mark.parametrize("case", EACH)
async def test_nothing_begins_while_a_dead_node_may_run_it(case: Case) -> None:
    async with sandbox_ground(case) as ground:
        await endings.waits_for_dead_nodes(ground, [case])


async def test_a_raycluster_that_is_cleaned_up_after_its_end_holds_up_no_next_run() -> None:
    (case,) = (case for case in cases() if case.name == "raycluster")
    async with sandbox_ground(case) as ground:
        await endings.outlives_its_pods(ground, case)
