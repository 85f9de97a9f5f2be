"""The job runner on a cluster in memory, with virtual time."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from multikueue.core.model.kinds import EVENT, JOB
from multikueue.core.model.names import Json, ObjectKey
from multikueue.sandbox.apiserver.direct import DirectClient
from multikueue.sandbox.apiserver.verbs.registry import Registry
from multikueue.sandbox.jobs import DURATION_ANNOTATION, JobRunner, RunnerOptions
from tests.sandbox.kueue.objects import condition, is_true, job
from tests.sandbox.kueue.world import wall_clock, world

pytestmark = pytest.mark.looptime


def plain(name: str = "j1", duration: str = "10s", **spec: Any) -> Json:
    """A Job that no queue has to let in."""
    return job(name, queue=None, annotations={DURATION_ANNOTATION: duration}, **spec)


def active(found: Json) -> bool:
    return bool((found.get("status") or {}).get("active"))


async def test_a_job_runs_as_long_as_it_says(looptime: Any) -> None:
    async with world(queues=False) as cluster:
        await cluster.create(plain())
        await cluster.job_when(active)
        assert looptime == 0
        await cluster.job_when(lambda found: is_true(found, "Complete"))
        assert looptime == 10


async def test_without_a_word_the_dice_decide(looptime: Any) -> None:
    options = RunnerOptions(mean=7, minimum=6, maximum=8)
    async with world(queues=False, options=options) as cluster:
        await cluster.create(job(queue=None))
        await cluster.job_when(lambda found: is_true(found, "Complete"))
        assert 6 <= looptime <= 8


async def test_suspending_stops_a_job_and_resuming_starts_its_time_again(looptime: Any) -> None:
    async with world(queues=False) as cluster:
        await cluster.create(plain())
        await cluster.job_when(active)
        await cluster.settle(9)
        await cluster.patch(JOB, "j1", {"spec": {"suspend": True}})
        stopped = await cluster.job_when(lambda found: is_true(found, "Suspended"))
        assert (active(stopped), "startTime" in stopped["status"]) == (False, False)
        await cluster.settle(100)
        await cluster.patch(JOB, "j1", {"spec": {"suspend": False}})
        await cluster.job_when(lambda found: is_true(found, "Complete"))
        assert looptime == 119


async def test_a_failure_rate_of_one_fails_everything() -> None:
    async with world(queues=False, options=RunnerOptions(failure_rate=1)) as cluster:
        await cluster.create(job(queue=None))
        found = await cluster.job_when(lambda found: is_true(found, "Failed"))
        assert (condition(found, "Failed") or ("", ""))[1] == "BackoffLimitExceeded"


async def test_many_jobs_run_side_by_side(looptime: Any) -> None:
    async with world(queues=False) as cluster:
        await cluster.create(*[plain(f"j{number}") for number in range(20)])
        for number in range(20):
            await cluster.job_when(lambda found: is_true(found, "Complete"), f"j{number}")
        assert looptime == 10


async def test_the_story_is_told_in_events() -> None:
    async with world(queues=False) as cluster:
        await cluster.create(plain(suspend=True))
        await cluster.job_when(lambda found: is_true(found, "Suspended"))
        await cluster.patch(JOB, "j1", {"spec": {"suspend": False}})
        await cluster.job_when(lambda found: is_true(found, "Complete"))
        await cluster.settle()
        told = [(event["reason"], event["note"]) for event in (await cluster.client.list(EVENT)).items]
        assert sorted(told) == [
            ("Completed", "Job completed"),
            ("Resumed", "Job resumed"),
            ("Suspended", "Job suspended"),
        ]


async def test_a_deleted_job_is_forgotten_and_its_successor_starts_afresh(looptime: Any) -> None:
    async with world(queues=False) as cluster:
        await cluster.create(plain())
        await cluster.job_when(active)
        await cluster.settle(9)
        await cluster.client.delete(JOB, ObjectKey("default", "j1"), propagation="Background")
        await cluster.create(plain())
        await cluster.job_when(lambda found: is_true(found, "Complete"))
        assert looptime == 19


async def test_a_runner_that_starts_late_finishes_what_another_began() -> None:
    """The time of a running job starts again: how long it ran before is not on the object."""
    registry = Registry(clock=wall_clock)
    client = DirectClient(registry)
    registry.create_object(plain())
    with anyio.move_on_after(5):
        async with anyio.create_task_group() as first:
            await first.start(JobRunner(client, clock=wall_clock).run)
    assert active(await client.get(JOB, ObjectKey("default", "j1")))
    with anyio.move_on_after(11):
        async with anyio.create_task_group() as second:
            await second.start(JobRunner(client, clock=wall_clock).run)
    assert is_true(await client.get(JOB, ObjectKey("default", "j1")), "Complete")
