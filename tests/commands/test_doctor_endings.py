"""A job copy that does not end, with the real daemon on a virtual clock: `doctor`, and `explain` of who waits."""

from __future__ import annotations

from functools import partial

import anyio
import pytest

from multikueue.core.model.kinds import JOB, POD, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import uid
from multikueue.errors import Forbidden, ServerFault
from multikueue.sandbox.apiserver import DirectClient
from multikueued.diagnosis.findings import Diagnosis
from multikueued.reports.explanation import Explanation
from multikueued.reports.jobs import JobState
from tests.commands.breaking import Refusals, explained, seen_after
from tests.commands.diagnosing import diagnosed, named
from tests.runtime.fleet import Fleet

pytestmark = pytest.mark.looptime

KEY = ObjectKey("default", "job")
SLOW = "example.com/slow"


def ids(diagnosis: Diagnosis) -> list[str]:
    return [finding.id for finding in diagnosis.findings]


async def held(fleet: Fleet) -> Json:
    """A foreign finalizer on the job copy."""
    there = DirectClient(fleet.workers["worker1"])
    return await there.merge_patch(JOB, KEY, {"metadata": {"finalizers": [SLOW]}})


async def delete_held(fleet: Fleet) -> None:
    """The job is deleted on the manager, where nothing stands for it then."""
    await held(fleet)
    await fleet.admin.delete(JOB, KEY, propagation="Background")


async def evict_held(fleet: Fleet) -> None:
    """It is deactivated, and made active again once its quota is gone."""
    await held(fleet)
    (workload,) = (await fleet.admin.list(WORKLOAD)).items
    for active in (False, True):
        await fleet.admin.merge_patch(WORKLOAD, ObjectKey.of(workload), {"spec": {"active": active}})
        await anyio.sleep(5)


async def test_of_a_job_that_was_deleted_the_doctor_tells() -> None:
    """On the manager nothing stands for it, so nobody else can tell."""
    soon = await seen_after(diagnosed, after=delete_held, seconds=60)
    assert ids(soon) == []
    late = await seen_after(diagnosed, after=delete_held, seconds=100)
    finding = named(late, "copy-does-not-end")
    assert finding.where == "worker1, Job default/job"
    assert f"held by the finalizer {SLOW}" in finding.why
    assert ids(late) == ["copy-does-not-end"]


async def test_its_pods_are_looked_for_and_the_node_is_named() -> None:
    async def node_dies(fleet: Fleet) -> None:
        copy = await held(fleet)
        fleet.runners["worker1"].node_is_dead = True
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": uid(copy), "controller": True}
        metadata = {"name": "job-x", "namespace": "default", "ownerReferences": [owner]}
        spec = {"nodeName": "n1", "containers": [{"name": "main", "image": "x"}]}
        there = DirectClient(fleet.workers["worker1"])
        await there.create(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        await there.delete(POD, ObjectKey("default", "job-x"))
        await fleet.admin.delete(JOB, KEY, propagation="Background")

    diagnosis = await seen_after(diagnosed, after=node_dies, seconds=120)
    assert "pod job-x on node n1 should have ended at" in named(diagnosis, "copy-does-not-end").why
    refused: Refusals = {("list", "pods"): Forbidden("no", status=403)}
    blind = await seen_after(partial(diagnosed, refusals=refused), after=node_dies, seconds=120)
    assert "its pods are not known: they may not be listed" in named(blind, "copy-does-not-end").why


@pytest.mark.parametrize("error", [Forbidden("no", status=403), ServerFault("no", status=500)])
async def test_copies_that_may_not_be_listed_are_not_checked(error: Forbidden | ServerFault) -> None:
    refused: Refusals = {("list", "jobs"): error}
    diagnosis = await seen_after(partial(diagnosed, refusals=refused), after=delete_held, seconds=120)
    assert "copy-does-not-end" not in ids(diagnosis)
    assert "which job copies on worker1 do not end" in [gap.what for gap in diagnosis.not_checked]


async def test_a_job_that_waits_for_its_earlier_run_says_so_and_after_a_while_what_holds_it() -> None:
    soon: Explanation = await seen_after(explained, after=evict_held, seconds=5)
    assert soon.job.state is JobState.WAITING
    assert soon.summary == 'It waits for an earlier run of it to end on worker cluster "worker1".'
    late: Explanation = await seen_after(explained, after=evict_held, seconds=600)
    (finding,) = (finding for finding in late.findings if finding.id == "copy-does-not-end")
    assert finding.why.endswith(f"held by the finalizer {SLOW}")
    assert "multikueue.dev/give-up=worker1/" in finding.remedy
    assert late.summary == f"It does not run, and somebody has to act: {finding.why}."


async def test_a_job_that_waits_is_one_finding_of_the_doctor() -> None:
    diagnosis = await seen_after(diagnosed, after=evict_held, seconds=600)
    assert ids(diagnosis) == ["copy-does-not-end"]
    assert "multikueue.dev/give-up=worker1/" in diagnosis.findings[0].remedy
