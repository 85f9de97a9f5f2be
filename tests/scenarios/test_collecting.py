"""Appendix D, GC: what is left on a worker when its Workload on the manager is gone or over."""

from __future__ import annotations

from datetime import timedelta

import attrs
import pytest

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import uid
from multikueue.testing import job
from tests.scenarios.fleet import Fleet, Scenario
from tests.simulation.daemon import SETTINGS

JOB_KEY = ObjectKey("default", "job")


async def _plant(fleet: Fleet, number: int, name: str, origin: str, owner: Json | None = None) -> ObjectKey:
    """A Workload on a worker that the manager has never heard of."""
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    metadata: Json = {"name": name, "namespace": "default", "labels": {ORIGIN_LABEL: origin}}
    if owner is not None:
        metadata["ownerReferences"] = [{**owner, "controller": True}]
    workload = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": metadata}
    spec = {"queueName": "user-queue", "podSets": [{"name": "main", "count": 1, "template": template}]}
    await fleet.worker(number).api.create(WORKLOAD, {**workload, "spec": spec})
    return ObjectKey("default", name)


@pytest.mark.decisive
async def test_local_deleted_with_reachable_workers(scenario: Scenario) -> None:
    """The user deletes the job: nothing of it remains anywhere."""
    async with scenario() as fleet:
        await fleet.submit(to=1)
        await fleet.until(lambda: fleet.job(1) is not None)
        await fleet.manager.api.delete(JOB, JOB_KEY, propagation="Background")

        await fleet.until(lambda: fleet.workload is None and fleet.copy(1) is None and fleet.job(1) is None)


async def test_local_deleted_with_unreachable_worker_then_gc(scenario: Scenario) -> None:
    """The worker that was cut off when the user deleted the job is cleaned when it is back."""
    async with scenario() as fleet:
        await fleet.submit(to=1)
        await fleet.until(lambda: fleet.job(1) is not None)
        fleet.worker(1).link.change(down=True)
        await fleet.manager.api.delete(JOB, JOB_KEY, propagation="Background")
        await fleet.until(lambda: fleet.workload is None)
        await fleet.rest(300)
        assert fleet.job(1) is not None

        fleet.worker(1).link.change(down=False)
        await fleet.until(lambda: fleet.copy(1) is None and fleet.job(1) is None, seconds=90)


async def test_local_deleted_while_the_daemon_is_down(scenario: Scenario) -> None:
    """A daemon that starts finds copies of what was deleted before, and removes them."""
    async with scenario() as fleet:
        await fleet.submit(to=1)
        await fleet.until(lambda: fleet.job(1) is not None)
        fleet.manager.link.change(down=True)
        fleet.kill_daemon()
        await fleet.manager.api.delete(JOB, JOB_KEY, propagation="Background")
        await fleet.until(lambda: fleet.workload is None)
        fleet.manager.link.change(down=False)

        await fleet.until(lambda: fleet.copy(1) is None and fleet.job(1) is None, seconds=90)


async def test_finished_with_unreachable_worker(scenario: Scenario) -> None:
    """A Workload that was finished while its worker was cut off is cleaned there when it is back."""
    async with scenario() as fleet:
        await fleet.submit(to=1)
        await fleet.until(lambda: fleet.job(1) is not None)
        fleet.worker(1).link.change(down=True)
        stamp = {"reason": "Succeeded", "message": "by hand", "lastTransitionTime": "2026-01-01T00:01:00Z"}
        conditions = [*(fleet.workload or {})["status"]["conditions"], {"type": "Finished", "status": "True", **stamp}]
        await fleet.manager.api.merge_patch(
            WORKLOAD, fleet.key, {"status": {"conditions": conditions}}, subresource="status"
        )
        await fleet.rest(60)
        assert fleet.copy(1) is not None

        fleet.worker(1).link.change(down=False)
        await fleet.until(lambda: fleet.copy(1) is None and fleet.job(1) is None, seconds=90)


async def test_keep_existing(scenario: Scenario) -> None:
    """What belongs to a Workload that exists stays, however often everything is looked at."""
    async with scenario() as fleet:
        await fleet.submit(to=1)
        await fleet.until(lambda: fleet.job(1) is not None)
        before = uid(fleet.copy(1) or {}), uid(fleet.job(1) or {})
        writes = fleet.writes(1, "delete")
        await fleet.rest(300)

        assert (uid(fleet.copy(1) or {}), uid(fleet.job(1) or {})) == before
        assert fleet.writes(1, "delete") == writes


@pytest.mark.decisive
async def test_delete_missing(scenario: Scenario) -> None:
    """A copy of ours whose Workload the manager does not have is removed."""
    async with scenario() as fleet:
        fleet.key = await _plant(fleet, 1, "left-over", "multikueue")

        await fleet.until(lambda: fleet.copy(1) is None)


async def test_delete_with_owner_job(scenario: Scenario) -> None:
    """The job that owns such a copy goes with it."""
    async with scenario() as fleet:
        await fleet.submit(to=1)
        await fleet.until(lambda: fleet.job(1) is not None)
        job = fleet.job(1) or {}
        fleet.worker(1).link.change(down=True)
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": uid(job), "controller": True}
        await fleet.worker(1).api.merge_patch(WORKLOAD, fleet.key, {"metadata": {"ownerReferences": [owner]}})
        await fleet.manager.api.delete(JOB, JOB_KEY, propagation="Background")
        fleet.worker(1).link.change(down=False)

        await fleet.until(lambda: fleet.copy(1) is None and fleet.job(1) is None, seconds=90)


@pytest.mark.decisive
async def test_unknown_owner_kind(scenario: Scenario) -> None:
    """A left-over copy is removed even if its owner is of a kind we do not know; the owner is not ours to touch."""
    async with scenario() as fleet:
        other = await fleet.worker(1).api.create(JOB, job("theirs", delegated=False, queue=""))
        owner = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "widget", "uid": uid(other)}
        fleet.key = await _plant(fleet, 1, "of-a-widget", "multikueue", owner)

        await fleet.until(lambda: fleet.copy(1) is None)
        assert fleet.job(1, "theirs") is not None


@pytest.mark.decisive
async def test_foreign_origin_untouched(scenario: Scenario) -> None:
    """What another manager has put on the worker is not ours, whatever it is called."""
    async with scenario() as fleet:
        key = await _plant(fleet, 1, "theirs", "another-manager")
        await fleet.rest(180)

        assert fleet.worker(1).find(WORKLOAD, key) is not None


async def test_interval_0(scenario: Scenario) -> None:
    """Without the periodic look everything is still followed by its events."""
    async with scenario(settings=attrs.evolve(SETTINGS, gc_interval=timedelta(0))) as fleet:
        fleet.key = await _plant(fleet, 1, "left-over", "multikueue")
        await fleet.until(lambda: fleet.copy(1) is None)
