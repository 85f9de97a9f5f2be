"""Jobs that Kueue's built-in controller has dispatched run on under us, and ours have what it looks for.

Its copies carry no mark of an attempt and no digest of the spec. A job names its Workload in a label, or
in an annotation.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.labels import (
    JOB_UID_LABEL,
    ORIGIN_LABEL,
    PREBUILT_WORKLOAD,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import uid
from multikueue.core.model.workloads import check_state, cluster_name, is_admitted, is_finished
from multikueue.sandbox.apiserver import DirectClient, Match, Refuse
from tests.runtime.fleet import CHECK, Fleet, is_active, until
from tests.runtime.test_unregistered_kinds import JOB_KEY, end_job

pytestmark = pytest.mark.looptime


def job_as_built_in(job: Json, workload: str, *, form: str) -> Json:
    """The job's copy as the built-in controller makes it."""
    labels = {**(job["metadata"].get("labels") or {}), ORIGIN_LABEL: "multikueue"}
    annotations = dict(job["metadata"].get("annotations") or {})
    (labels if form == "label" else annotations)[PREBUILT_WORKLOAD] = workload
    spec = {field: value for field, value in job["spec"].items() if field not in ("managedBy", "selector")}
    template_labels = spec["template"].get("metadata", {}).get("labels") or {}
    for generated in [name for name in template_labels if "controller-uid" in name or "job-name" in name]:
        del template_labels[generated]
    metadata = {"name": JOB_KEY.name, "namespace": JOB_KEY.namespace, "labels": labels, "annotations": annotations}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def workload_as_built_in(workload: Json) -> Json:
    """The Workload copy as the built-in controller makes it."""
    labels = {**(workload["metadata"].get("labels") or {}), ORIGIN_LABEL: "multikueue"}
    labels.pop(JOB_UID_LABEL, None)
    metadata = {"name": workload["metadata"]["name"], "namespace": "default", "labels": labels}
    return {**{field: workload[field] for field in ("apiVersion", "kind", "spec")}, "metadata": metadata}


@asynccontextmanager
async def left_by_built_in(form: str, *, recorded: bool) -> AsyncIterator[Fleet]:
    """worker1 runs the job as the built-in controller has made it; it was stopped before or after it recorded that."""
    fleet = Fleet.of("worker1", "worker2")
    async with fleet.kueues():
        await fleet.connect()
        async with fleet.running():  # until the AdmissionCheck is Active
            for name in fleet.workers:
                await until(is_active(fleet, name))
            await anyio.sleep(1)
        await fleet.submit()

        async def queued() -> bool:
            return bool((await fleet.admin.list(WORKLOAD)).items)

        await until(queued)
        await anyio.sleep(1)
        worker, workload = DirectClient(fleet.workers["worker1"]), await fleet.workload()
        key = ObjectKey.of(workload)
        await worker.create(WORKLOAD, workload_as_built_in(workload))

        async def admitted() -> bool:
            return is_admitted(await worker.get(WORKLOAD, key))

        await until(admitted)
        await worker.create(JOB, job_as_built_in(await fleet.admin.get(JOB, JOB_KEY), key.name, form=form))
        await fleet.admin.merge_patch(
            WORKLOAD, key, {"status": {"nominatedClusterNames": ["worker1", "worker2"]}}, subresource="status"
        )
        if recorded:
            (entry,) = workload["status"]["admissionChecks"]
            ready = {**entry, "state": "Ready", "message": 'The workload got reservation on "worker1"'}
            status = {"clusterName": "worker1", "nominatedClusterNames": None, "admissionChecks": [ready]}
            await fleet.admin.merge_patch(WORKLOAD, key, {"status": status}, subresource="status")

        async def runs() -> bool:
            return [*await fleet.running_on()] == ["worker1"]

        await until(runs)
        yield fleet


@pytest.mark.parametrize("form", ["label", "annotation"])
async def test_a_job_of_the_built_in_controller_runs_on_and_ends(form: str) -> None:
    async with left_by_built_in(form, recorded=True) as fleet:
        before = await fleet.running_on()
        worker = DirectClient(fleet.workers["worker1"])
        copy = uid((await worker.list(WORKLOAD)).items[0])
        async with fleet.running():
            for _ in range(120):
                assert await fleet.running_on() == before
                await anyio.sleep(1)
            workload = await fleet.workload()
            assert (cluster_name(workload), check_state(workload, CHECK)) == ("worker1", "Ready")
            assert [uid(one) for one in (await worker.list(WORKLOAD)).items] == [copy]
            assert (await fleet.admin.get(JOB, JOB_KEY))["status"]["active"] == 1
            await end_job(fleet)

            async def over() -> bool:
                return is_finished(await fleet.workload()) and not (await worker.list(WORKLOAD)).items

            await until(over)


@pytest.mark.parametrize("form", ["label", "annotation"])
async def test_one_that_was_not_recorded_is_gone_before_anybody_gets_the_workload(form: str) -> None:
    """Nothing tells it from what a user of that worker has made. It is not left to run beside ours, either: its Kueue
    stops it, though its API server refuses to delete it."""
    async with left_by_built_in(form, recorded=False) as fleet:
        worker = DirectClient(fleet.workers["worker1"])
        (before,) = (await fleet.running_on()).values()
        refused = fleet.workers["worker1"].faults.add(
            Refuse(500), on=Match(verbs=("delete",), resource="jobs", user="multikueue")
        )
        async with fleet.running():
            for _ in range(60):
                assert cluster_name(await fleet.workload()) is None
                assert {*(await fleet.running_on()).values()} <= {before}
                await anyio.sleep(1)
            assert not await fleet.running_on()
            fleet.workers["worker1"].faults.remove(refused)

            async def runs_anew() -> bool:
                running = await fleet.running_on()
                assert len(running) < 2
                return bool(running) and before not in running.values()

            await until(runs_anew, within=180)  # it was sent back meanwhile
            assert cluster_name(await fleet.workload()) in await fleet.running_on()
            assert before not in [uid(one) for one in (await worker.list(JOB)).items]
