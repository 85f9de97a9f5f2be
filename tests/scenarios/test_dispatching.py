"""Appendix D, WL: from a Workload with quota to one that a worker has."""

from __future__ import annotations

import pytest

from multikueue.core.model.copies import prebuilt_workload
from multikueue.core.model.kinds import ADMISSION_CHECK, CLUSTER_QUEUE, JOB, MULTIKUEUE_CONFIG, WORKLOAD
from multikueue.core.model.labels import JOB_UID_LABEL, ORIGIN_LABEL
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import labels_of
from multikueue.sandbox.setting_up import CHECK, CLUSTER_QUEUE_NAME, config
from tests.scenarios.fleet import Scenario


async def test_no_ac_is_ignored(scenario: Scenario) -> None:
    """A Workload whose queue has no check of ours is admitted without us, and nothing is copied."""
    async with scenario() as fleet:
        queue = ObjectKey("", CLUSTER_QUEUE_NAME)
        await fleet.manager.api.merge_patch(CLUSTER_QUEUE, queue, {"spec": {"admissionChecksStrategy": None}})
        await fleet.submit()
        await fleet.until(lambda: fleet.says("Admitted"))
        await fleet.rest()

        assert fleet.copy(1) is None
        assert fleet.copy(2) is None


async def test_not_delegated_is_rejected(scenario: Scenario) -> None:
    """A job that Kueue itself would start is rejected, and the field that says so is named."""
    async with scenario() as fleet:
        await fleet.submit(change=lambda job: job["spec"].pop("managedBy"), quota=False)

        expected = (
            'The owner is not managed by Kueue: Expecting spec.managedBy to be "kueue.x-k8s.io/multikueue" not "" '
            '(Kubernetes before v1.32 drops the field), Previously: "Pending"'
        )
        await fleet.until(lambda: fleet.check == ("Rejected", expected))
        await fleet.rest()
        assert fleet.copy(1) is None
        [(kind, advice)] = fleet.events()
        assert kind == "Warning"
        assert 'Expecting spec.managedBy to be "kueue.x-k8s.io/multikueue"' in advice
        assert "create the job again with that value" in advice


async def test_unknown_parent_kind_is_rejected(scenario: Scenario) -> None:
    """A Workload of a kind nobody registered is rejected, and the kind is named."""
    async with scenario() as fleet:
        await fleet.manager.api.create(WORKLOAD, _orphan("of-a-widget", owner=True))
        fleet.key = ObjectKey("default", "of-a-widget")

        expected = 'No multikueue adapter found for owner kind "example.com/v1, Kind=Widget", Previously: "Pending"'
        await fleet.until(lambda: fleet.check == ("Rejected", expected))


@pytest.mark.decisive
async def test_no_parent_is_rejected(scenario: Scenario) -> None:
    """A Workload nobody owns is rejected: there is no job to run."""
    async with scenario() as fleet:
        await fleet.manager.api.create(WORKLOAD, _orphan("of-nobody", owner=False))
        fleet.key = ObjectKey("default", "of-nobody")

        await fleet.until(lambda: fleet.check == ("Rejected", 'No multikueue adapter found, Previously: "Pending"'))


@pytest.mark.decisive
async def test_create_on_all(scenario: Scenario) -> None:
    """A Workload with quota is offered to every worker, and the offer is noted on it."""
    async with scenario(3) as fleet:
        await fleet.submit()
        await fleet.until(lambda: all(fleet.copy(number) for number in fleet.numbers))

        await fleet.until(lambda: fleet.nominated == tuple(fleet.workers))
        copy, local = fleet.copy(1) or {}, fleet.workload or {}
        assert labels_of(copy)[ORIGIN_LABEL] == "multikueue"
        assert JOB_UID_LABEL not in labels_of(copy)
        assert "ownerReferences" not in copy["metadata"]
        assert copy["spec"]["podSets"] == local["spec"]["podSets"]
        assert fleet.job(1) is None


async def test_one_post_fails_and_others_are_created(scenario: Scenario) -> None:
    """A worker that refuses the copy does not keep the others from getting theirs, and is asked again."""
    async with scenario() as fleet:
        fleet.worker(1).link.change(refused=1.0)
        await fleet.submit()
        await fleet.until(lambda: fleet.copy(2) is not None)
        assert fleet.copy(1) is None

        fleet.worker(1).link.change(refused=0.0)
        await fleet.until(lambda: fleet.copy(1) is not None, seconds=90)


async def test_remote_reserving_only_deletes_nothing(scenario: Scenario) -> None:
    """Quota on a worker is not admission: the other workers keep their copies."""
    async with scenario() as fleet:
        await fleet.submit()
        await fleet.until(lambda: fleet.copy(1) is not None and fleet.copy(2) is not None)
        await fleet.say(1, "QuotaReserved")
        await fleet.rest()

        assert fleet.copy(2) is not None
        assert fleet.job(1) is None
        assert fleet.check[0] == "Pending"


@pytest.mark.decisive
async def test_admitted(scenario: Scenario) -> None:
    """The first worker to admit gets the job: losers' copies go, the check is Ready, and it is told once."""
    async with scenario(3) as fleet:
        await fleet.submit(to=2)
        losers = [number for number in fleet.numbers if number != 2]
        await fleet.until(lambda: not any(fleet.copy(number) for number in losers))
        await fleet.rest(120)

        assert fleet.check == ("Ready", 'The workload was admitted on "worker2"')
        assert fleet.assigned == "worker2"
        assert fleet.nominated == ()
        assert fleet.says("Admitted")
        assert fleet.events() == [("Normal", 'The workload was admitted on "worker2"')]
        job: Json = fleet.job(2) or {}
        assert prebuilt_workload(job) == fleet.key.name
        assert labels_of(job)[ORIGIN_LABEL] == "multikueue"
        assert "managedBy" not in job["spec"]
        assert not any(fleet.job(number) for number in losers)


async def test_other_ac_pending_blocks_creation(scenario: Scenario) -> None:
    """Copies are made only once the checks of others are Ready."""
    async with scenario() as fleet:
        meta = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck", "metadata": {"name": "budget"}}
        await fleet.manager.api.create(ADMISSION_CHECK, {**meta, "spec": {"controllerName": "example.com/budget"}})
        active = {"type": "Active", "status": "True", "reason": "Active", "message": "", "observedGeneration": 1}
        stamped = {**active, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        budget = ObjectKey("", "budget")
        await fleet.manager.api.merge_patch(
            ADMISSION_CHECK, budget, {"status": {"conditions": [stamped]}}, subresource="status"
        )
        both = {"admissionChecks": [{"name": CHECK}, {"name": "budget"}]}
        queue = ObjectKey("", CLUSTER_QUEUE_NAME)
        await fleet.manager.api.merge_patch(CLUSTER_QUEUE, queue, {"spec": {"admissionChecksStrategy": both}})
        await fleet.submit()
        await fleet.rest()
        assert fleet.copy(1) is None

        checks = [
            {**entry, "state": "Ready"} if entry["name"] == "budget" else entry
            for entry in (fleet.workload or {})["status"]["admissionChecks"]
        ]
        await fleet.manager.user("budget").merge_patch(
            WORKLOAD, fleet.key, {"status": {"admissionChecks": checks}}, subresource="status"
        )
        await fleet.until(lambda: fleet.copy(1) is not None)


@pytest.mark.decisive
async def test_config_clusters_changed(scenario: Scenario) -> None:
    """A pending Workload follows its config: a worker listed gets a copy, one listed no more loses it."""
    async with scenario() as fleet:
        await fleet.change_config(1)
        await fleet.submit()
        await fleet.until(lambda: fleet.copy(1) is not None)
        await fleet.rest()
        assert fleet.copy(2) is None

        await fleet.change_config(2)
        await fleet.until(lambda: fleet.copy(1) is None and fleet.copy(2) is not None)
        await fleet.until(lambda: fleet.nominated == ("worker2",))


@pytest.mark.decisive
async def test_ac_re_pointed(scenario: Scenario) -> None:
    """A check that refers to another config moves its pending Workloads to that config's workers."""
    async with scenario() as fleet:
        await fleet.change_config(1)
        await fleet.submit()
        await fleet.until(lambda: fleet.copy(1) is not None)
        other = config(["worker2"])
        other["metadata"]["name"] = "other"
        await fleet.manager.api.create(MULTIKUEUE_CONFIG, other)
        parameters = {"spec": {"parameters": {"name": "other"}}}
        await fleet.manager.api.merge_patch(ADMISSION_CHECK, ObjectKey("", CHECK), parameters)

        await fleet.until(lambda: fleet.copy(1) is None and fleet.copy(2) is not None)


@pytest.mark.decisive
async def test_config_deleted(scenario: Scenario) -> None:
    """Without a config a pending Workload is offered to nobody; with it again, to all."""
    async with scenario() as fleet:
        await fleet.submit()
        await fleet.until(lambda: fleet.copy(1) is not None)
        await fleet.delete_config()
        await fleet.until(lambda: fleet.copy(1) is None and fleet.copy(2) is None)

        await fleet.manager.api.create(MULTIKUEUE_CONFIG, config(["worker1", "worker2"]))
        await fleet.until(lambda: fleet.copy(1) is not None and fleet.copy(2) is not None)


@pytest.mark.decisive
async def test_deferred_sync(scenario: Scenario) -> None:
    """A job that runs on the worker shows no start on the manager while the manager's is suspended."""
    async with scenario() as fleet:
        await fleet.submit(to=1)
        await fleet.until(lambda: fleet.job() is not None and not (fleet.job() or {})["spec"]["suspend"])
        await fleet.worker(1).api.merge_patch(JOB, ObjectKey("default", "job"), {"spec": {"suspend": False}})
        await fleet.set_job_status(1, {"active": 1, "ready": 1, "startTime": "2026-01-01T00:00:30Z"})

        await fleet.until(lambda: (fleet.job() or {}).get("status", {}).get("active") == 1, seconds=2)


def _orphan(name: str, *, owner: bool) -> Json:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
    pod_set = {"name": "main", "count": 1, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    metadata: Json = {"name": name, "namespace": "default"}
    if owner:
        reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "widget", "uid": "1", "controller": True}
        metadata["ownerReferences"] = [reference]
    workload = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": metadata}
    return {**workload, "spec": {"queueName": "user-queue", "podSets": [pod_set]}}
