"""The breaks that only a worker's Kueue knows of: the check's message tells them, and `explain` has the remedy."""

from __future__ import annotations

import pytest

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import CLUSTER_QUEUE, LOCAL_QUEUE, WORKLOAD
from multikueue.core.model.names import ObjectKey
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.setting_up import CLUSTER_QUEUE_NAME, LOCAL_QUEUE_NAME
from multikueued.reports.jobs import JobState
from tests.commands.breaking import explained_after, finding
from tests.runtime.fleet import Fleet

pytestmark = pytest.mark.looptime


async def test_missing_local_queue_on_every_worker() -> None:
    async def delete(fleet: Fleet) -> None:
        for worker in fleet.workers.values():
            await DirectClient(worker).delete(LOCAL_QUEUE, ObjectKey("default", LOCAL_QUEUE_NAME))

    found = await explained_after(2, before=delete)

    wrong = finding(found, "local-queue-missing")
    assert wrong.blocking
    assert wrong.why.startswith(f'LocalQueue "{LOCAL_QUEUE_NAME}" does not exist in namespace "default" on worker')


async def test_quota_too_small_on_every_worker() -> None:
    async def shrink(fleet: Fleet) -> None:
        for worker in fleet.workers.values():
            client, key = DirectClient(worker), ObjectKey("", CLUSTER_QUEUE_NAME)
            groups = (await client.get(CLUSTER_QUEUE, key))["spec"]["resourceGroups"]
            groups[0]["flavors"][0]["resources"][0]["nominalQuota"] = "100m"
            await client.merge_patch(CLUSTER_QUEUE, key, {"spec": {"resourceGroups": groups}})

    found = await explained_after(2, before=shrink)

    wrong = finding(found, "quota-too-small")
    assert wrong.blocking
    assert "raise nominalQuota of cpu there" in wrong.remedy
    assert [one.state for one in found.workers] == ["Waiting", "Waiting"]


async def _stop_the_recorded(fleet: Fleet) -> None:
    (made,) = (await fleet.admin.list(WORKLOAD)).items
    fleet.workers[made["status"]["clusterName"]].faults.partition("reset")


async def test_a_lost_worker_has_the_deadline_that_the_daemon_tells() -> None:
    found = await explained_after(2, after=_stop_the_recorded, seconds=100)

    assert found.job.state is JobState.LOST
    assert found.needs_somebody
    step = found.next[0]
    assert step.text.startswith("the job goes to another worker, unless this one is back before: unreachable since")
    assert "; moves at 2026-01-01T00:" in step.text
    assert step.at is not None
    assert timestamp(step.at) in step.text, "the same for programs"


async def test_a_job_that_moved_says_where_it_was_and_why() -> None:
    found = await explained_after(2, after=_stop_the_recorded, seconds=1100)

    before, now = found.placements
    assert (found.job.state, found.job.worker) == (JobState.RUNNING, now.worker)
    assert before.worker != now.worker
    assert "Admitting remote lost" in before.why
    assert before.until is not None
    assert now.until is None
