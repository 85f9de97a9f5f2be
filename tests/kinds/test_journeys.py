"""Journeys of every kind over the sandbox, with the kinds' own definitions where they are beside the checkout."""

from __future__ import annotations

import pytest

from tests.kinds import journeys
from tests.kinds.cases import Case, cases
from tests.kinds.sandbox_ground import sandbox_ground

pytestmark = pytest.mark.looptime

ALL = [pytest.param(case, id=case.name) for case in cases()]
ENDING = [pytest.param(case, id=case.name) for case in cases() if case.kind.course.ends]
COPIED = [pytest.param(case, id=case.name) for case in cases() if case.adapter.resource == case.kind.resource]
"""All but Deployments, whose pods are copied."""
ELASTIC = [pytest.param(case, id=case.name) for case in cases() if case.adapter.sync.resized is not None]
FIXED = [pytest.param(case, id=case.name) for case in cases() if case.name in journeys.FIXED]
SHRINKING = [pytest.param(case, id=case.name) for case in cases() if case.name == "leaderworkerset"]
PASTED = [
    pytest.param(case, id=case.name) for case in cases() if case.name in ("job", "jobset", "pytorchjob", "podgroup")
]
"""Templates in the job, in a list and in a mapping, and pods."""
FOLLOWED = [pytest.param(case, id=case.name) for case in cases() if case.adapter.sync.forwarded]


@pytest.mark.parametrize("case", ALL)
async def test_a_job_is_copied_as_it_is_and_the_manager_shows_how_it_goes(case: Case) -> None:
    """Users look at the manager only; what runs is what they wrote."""
    async with sandbox_ground(case) as ground:
        await journeys.finishes(ground, case)


@pytest.mark.parametrize("case", PASTED)
async def test_a_job_made_from_what_was_shown_of_a_started_one_runs(case: Case) -> None:
    """It once waited for ever, with quota held on the manager and a worker."""
    async with sandbox_ground(case) as ground:
        await journeys.pasted(ground, case)


@pytest.mark.parametrize("case", ENDING)
async def test_a_job_that_fails_has_failed_on_the_manager(case: Case) -> None:
    """It is not tried elsewhere: whether to try again is the job's own business."""
    async with sandbox_ground(case) as ground:
        await journeys.fails(ground, case)


@pytest.mark.parametrize("case", ALL)
async def test_a_deleted_job_does_not_go_on_anywhere(case: Case) -> None:
    """Nothing stays behind on a worker."""
    async with sandbox_ground(case) as ground:
        await journeys.deleted(ground, case)


@pytest.mark.parametrize("case", COPIED)
async def test_somebody_elses_job_of_the_same_name_is_left_alone(case: Case) -> None:
    """What does not carry our mark is not ours; ours runs on the other worker."""
    async with sandbox_ground(case) as ground:
        await journeys.leaves_foreign_jobs_alone(ground, case)


@pytest.mark.parametrize("case", ALL)
async def test_an_evicted_job_is_stopped_and_runs_again(case: Case) -> None:
    """What Kueue put into its pod templates is taken out in between."""
    async with sandbox_ground(case) as ground:
        await journeys.runs_again_after_eviction(ground, case)


@pytest.mark.parametrize("case", FOLLOWED)
async def test_what_may_change_of_a_running_job_reaches_its_copy(case: Case) -> None:
    """A service is given another application while it runs."""
    async with sandbox_ground(case) as ground:
        await journeys.follows(ground, case)


@pytest.mark.parametrize("case", SHRINKING)
async def test_a_set_that_is_made_smaller_gives_up_what_it_does_not_need(case: Case) -> None:
    """The copy is not made anew for that."""
    async with sandbox_ground(case) as ground:
        await journeys.shrinks(ground, case)


@pytest.mark.parametrize("case", ELASTIC)
async def test_an_elastic_job_grows_and_shrinks_where_it_runs(case: Case) -> None:
    """It is not stopped for that, and no other worker gets a part of it."""
    async with sandbox_ground(case) as ground:
        await journeys.scales(ground, case)


@pytest.mark.parametrize("case", FIXED)
async def test_a_job_that_cannot_change_its_size_runs_on_as_it_is(case: Case) -> None:
    """KubeRay passes no changed size on: quota for it would be held for nothing."""
    async with sandbox_ground(case) as ground:
        await journeys.keeps_its_size(ground, case)
