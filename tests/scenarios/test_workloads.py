"""Appendix D, WL: from a Workload that a worker has to its end, or to the next attempt."""

from __future__ import annotations

from datetime import timedelta

import anyio
import pytest

from multikueue.core.model.conditions import condition
from multikueue.core.model.copies import prebuilt_workload
from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, uid
from multikueue.sandbox.kueue import evict
from multikueue.testing import job
from tests.scenarios.fleet import Fleet, Scenario
from tests.simulation.daemon import WORKER_LOST_TIMEOUT

JOB_KEY = ObjectKey("default", "job")


def _ending(kind: str, message: str) -> Json:
    """The status of a Job that is over."""
    start, stamp = "2026-01-01T00:00:30Z", "2026-01-01T00:01:00Z"
    entry = {"status": "True", "lastProbeTime": stamp, "lastTransitionTime": stamp, "message": message}
    first = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
    status: Json = {
        "startTime": start,
        "active": 0,
        "ready": 0,
        "conditions": [{**entry, "type": first}, {**entry, "type": kind}],
    }
    return {**status, "succeeded": 1, "completionTime": stamp} if kind == "Complete" else {**status, "failed": 1}


async def _start(fleet: Fleet, number: int) -> None:
    """Run the job on a bare worker."""
    await fleet.until(lambda: fleet.job(number) is not None)
    await fleet.worker(number).api.merge_patch(JOB, JOB_KEY, {"spec": {"suspend": False}})
    await fleet.set_job_status(number, {"active": 1, "ready": 1, "startTime": "2026-01-01T00:00:30Z"})


def _finished(fleet: Fleet) -> tuple[str, str]:
    finished = condition(fleet.workload or {}, "Finished") or {}
    return str(finished.get("reason")), str(finished.get("message"))


async def _evicted_with(fleet: Fleet, base: str) -> None:
    """Wait until Kueue has evicted the Workload because of what we said on the check."""
    reset = "Reset to Pending after eviction. Previously: Retry"
    await fleet.until(lambda: fleet.check == ("Pending", reset))
    evictions = dig(fleet.workload or {}, "status", "schedulingStats", "evictions") or []
    assert [(entry["reason"], entry["count"]) for entry in evictions] == [("AdmissionCheck", 1)]
    notes = [note for note in fleet.seen if note.startswith(base)]
    assert notes, f"no check said {base!r} but {fleet.seen}"


@pytest.mark.decisive
@pytest.mark.parametrize(
    ("kind", "message", "reason"),
    [("Complete", "Job finished successfully", "Succeeded"), ("Failed", "Job has reached its limit", "Failed")],
    ids=["ok", "failed"],
)
async def test_finished(scenario: Scenario, kind: str, message: str, reason: str) -> None:
    """The job's end comes home with its words, and then nothing of it is left on the worker."""
    async with scenario() as fleet:
        await fleet.submit(to=1)
        await _start(fleet, 1)
        await fleet.end(1, _ending(kind, message), reason=reason, message=message)
        await fleet.until(lambda: fleet.says("Finished"))

        assert _finished(fleet) == (reason, message)
        await fleet.until(lambda: fleet.copy(1) is None and fleet.job(1) is None)
        assert condition(fleet.job() or {}, kind) is not None


async def test_finished_and_the_job_is_gone(scenario: Scenario) -> None:
    """A job that was removed by its TTL before its end was seen is not made again."""
    async with scenario() as fleet:
        await fleet.submit(to=1)
        await _start(fleet, 1)
        first = uid(fleet.job(1) or {})
        fleet.worker(1).link.change(down=True)
        await fleet.say(1, "Finished", reason="Succeeded", message="done")
        await fleet.worker(1).api.delete(JOB, JOB_KEY, propagation="Background")
        fleet.worker(1).link.change(down=False)
        await fleet.until(lambda: fleet.says("Finished"), seconds=90)
        await fleet.rest()

        assert _finished(fleet) == ("Succeeded", "done")
        assert fleet.job(1) is None, f"made again: {uid(fleet.job(1) or {})} after {first}"


@pytest.mark.decisive
async def test_foreign_job_in_the_way(scenario: Scenario) -> None:
    """A job of somebody else with the same name is left alone, and the Workload goes to another worker."""
    async with scenario() as fleet:
        theirs = await fleet.worker(1).api.create(JOB, job("job", delegated=False, queue=""))
        await fleet.submit()
        await fleet.until(lambda: fleet.copy(2) is not None)
        await fleet.admit(1)
        await fleet.until(lambda: fleet.copy(2) is None)
        await fleet.until(lambda: fleet.nominated and fleet.copy(2) is not None, seconds=60)
        await fleet.assign(2)
        await fleet.until(lambda: fleet.copy(1) is None)

        assert uid(fleet.job(1) or {}) == uid(theirs)
        assert prebuilt_workload(fleet.job(1) or {}) == ""
        assert prebuilt_workload(fleet.job(2) or {}) == fleet.key.name


@pytest.mark.decisive
async def test_out_of_sync_while_ready(scenario: Scenario) -> None:
    """A worker's Kueue that found job and Workload different sends the Workload back, with a warning."""
    async with scenario() as fleet:
        await fleet.submit(to=1)
        await fleet.until(lambda: fleet.job(1) is not None)
        await fleet.say(1, "Finished", reason="OutOfSync", message="out of sync with its user job")

        base = 'Remote workload on worker cluster "worker1" is out of sync with its user job, resetting for re-dispatch'
        await _evicted_with(fleet, base)
        await fleet.until(lambda: ("Warning", f'{base}, Previously: "Ready"') in fleet.events())
        await fleet.until(lambda: not fleet.says("Evicted") and fleet.copy(2) is not None)


async def test_out_of_sync_while_pending(scenario: Scenario) -> None:
    """A copy that was given up before the Workload is assigned is replaced, and holds nothing up."""
    async with scenario() as fleet:
        await fleet.submit()
        await fleet.until(lambda: fleet.copy(1) is not None and fleet.copy(2) is not None)
        first = uid(fleet.copy(1) or {})
        await fleet.say(1, "Finished", reason="OutOfSync", message="out of sync with its user job")
        await fleet.until(lambda: fleet.copy(1) is not None and uid(fleet.copy(1) or {}) != first)
        await fleet.assign(2)

        await fleet.rest()
        assert fleet.events() == [("Normal", 'The workload was admitted on "worker2"')]


@pytest.mark.decisive
async def test_evicted_on_worker(scenario: Scenario) -> None:
    """A worker that evicts the copy sends the Workload back for another attempt, and the user is told."""
    async with scenario() as fleet:
        await fleet.submit(to=1)
        await _start(fleet, 1)
        await fleet.say(1, "Evicted", reason="Preempted", message="Preempted to accommodate another")

        message = 'Workload evicted on worker cluster: "worker1", resetting for re-admission. Previously: "Ready"'
        await _evicted_with(fleet, message)
        note = f"{message}. There: Preempted to accommodate another"
        await fleet.until(lambda: ("Normal", note) in fleet.events())


@pytest.mark.decisive
async def test_evicted_on_manager(scenario: Scenario) -> None:
    """The worker is asked to stop the job, its stop comes home, and only then the copies go."""
    async with scenario() as fleet:
        await fleet.submit(to=1)
        await _start(fleet, 1)
        await fleet.until(lambda: dig(fleet.job() or {}, "status", "active") == 1)
        await evict(fleet.manager.api, fleet.key, message="Preempted for a test", clock=fleet.now)
        await fleet.until(lambda: condition(fleet.copy(1) or {}, "DeactivationTarget") is not None)

        target = condition(fleet.copy(1) or {}, "DeactivationTarget") or {}
        assert target["reason"] == "EvictedOnManagerCluster"
        assert target["message"] == "Evicted on manager: Preempted for a test"
        await fleet.rest(3)
        assert fleet.says("QuotaReserved"), "the job still runs: its quota is not free"

        await fleet.worker(1).api.merge_patch(JOB, JOB_KEY, {"spec": {"suspend": True}})
        stopped = {"active": 0, "ready": 0, "startTime": None}
        await fleet.end(1, stopped, "Evicted", "!Admitted", "!QuotaReserved", reason="Deactivated")
        await fleet.until(lambda: fleet.assigned is None and not fleet.says("Evicted"))
        await fleet.until(lambda: fleet.job(1) is None and condition(fleet.copy(1) or {}, "Evicted") is None)


@pytest.mark.decisive
async def test_drift_is_deleted_and_recreated(scenario: Scenario) -> None:
    """A copy whose queue somebody changed is no copy any more: it is replaced."""
    async with scenario() as fleet:
        await fleet.submit()
        await fleet.until(lambda: fleet.copy(1) is not None)
        first = uid(fleet.copy(1) or {})
        await fleet.worker(1).api.merge_patch(WORKLOAD, fleet.key, {"spec": {"queueName": "another-queue"}})
        await fleet.until(lambda: fleet.copy(1) is not None and uid(fleet.copy(1) or {}) != first)

        assert (fleet.copy(1) or {})["spec"]["queueName"] == (fleet.workload or {})["spec"]["queueName"]


@pytest.mark.decisive
async def test_priority_change(scenario: Scenario) -> None:
    """A new priority reaches every copy; none is replaced for it."""
    async with scenario() as fleet:
        await fleet.submit(to=1)
        first = uid(fleet.copy(1) or {})
        await fleet.manager.api.merge_patch(WORKLOAD, fleet.key, {"spec": {"priority": 700}})
        await fleet.until(lambda: (fleet.copy(1) or {})["spec"].get("priority") == 700)

        assert uid(fleet.copy(1) or {}) == first


async def test_worker_lost_below_grace(scenario: Scenario) -> None:
    """A worker that is back in time keeps its job: nothing is written, nothing starts elsewhere."""
    async with scenario() as fleet:
        await fleet.submit(to=1)
        fleet.worker(1).link.change(down=True)
        await anyio.sleep(WORKER_LOST_TIMEOUT.total_seconds() - 60)  # the next attempt to connect may be 45 s away
        assert fleet.check[0] == "Ready"
        assert fleet.copy(2) is None
        fleet.worker(1).link.change(down=False)
        await anyio.sleep(WORKER_LOST_TIMEOUT.total_seconds())

        assert fleet.assigned == "worker1"
        assert fleet.check[0] == "Ready"


async def test_worker_lost_above_grace(scenario: Scenario) -> None:
    """After the time-out the Workload is tried elsewhere; the worker that comes back is cleaned, not believed."""
    async with scenario() as fleet:
        await fleet.submit(to=1)
        await _start(fleet, 1)
        fleet.worker(1).link.change(down=True)
        await fleet.until(lambda: fleet.copy(2) is not None, seconds=WORKER_LOST_TIMEOUT.total_seconds() + 10)
        assert any(note.startswith('Admitting remote lost, Previously: "Ready"') for note in fleet.seen)
        assert anyio.current_time() >= WORKER_LOST_TIMEOUT.total_seconds()

        await fleet.assign(2)
        fleet.worker(1).link.change(down=False)
        await fleet.until(lambda: fleet.copy(1) is None and fleet.job(1) is None, seconds=90)
        await fleet.rest()
        assert fleet.assigned == "worker2"
        assert fleet.check[0] == "Ready"


async def test_worker_lost_plus_drift_elsewhere(scenario: Scenario) -> None:
    """A stray copy on another worker is removed while the lost worker keeps its assignment."""
    async with scenario() as fleet:
        await fleet.submit()
        await fleet.until(lambda: fleet.copy(2) is not None)
        stray = fleet.copy(2) or {}
        await fleet.assign(1)
        await fleet.until(lambda: fleet.copy(2) is None)
        fleet.worker(1).link.change(down=True)
        kept = {field: stray["metadata"][field] for field in ("name", "namespace", "labels", "annotations")}
        spec = {**stray["spec"], "queueName": "another-queue"}
        await fleet.worker(2).api.create(
            WORKLOAD, {"apiVersion": stray["apiVersion"], "kind": stray["kind"], "metadata": kept, "spec": spec}
        )
        await fleet.until(lambda: fleet.copy(2) is None)

        assert fleet.assigned == "worker1"
        assert fleet.check[0] == "Ready"


@pytest.mark.decisive
async def test_reachable_but_copy_gone(scenario: Scenario) -> None:
    """A copy that vanishes from a worker that can be seen is tried again at once."""
    async with scenario() as fleet:
        await fleet.submit(to=1)
        await fleet.until(lambda: fleet.job(1) is not None)
        before = anyio.current_time()
        await fleet.worker(1).api.delete(WORKLOAD, fleet.key)

        await _evicted_with(fleet, 'Admitting remote no longer exists, Previously: "Ready"')
        assert anyio.current_time() - before < 2


async def test_ready_without_cluster_name(scenario: Scenario) -> None:
    """A Ready check without a cluster is nobody's doing that we know: it is tried again, and says so."""
    async with scenario() as fleet:
        fleet.manager.link.change(down=True)
        await fleet.submit()
        checks = [{**entry, "state": "Ready"} for entry in (fleet.workload or {})["status"]["admissionChecks"]]
        await fleet.manager.user("somebody").merge_patch(
            WORKLOAD, fleet.key, {"status": {"admissionChecks": checks}}, subresource="status"
        )
        fleet.manager.link.change(down=False)

        base = "Admission check is Ready but no admitting cluster is recorded; this is unexpected, please report it"
        await fleet.until(lambda: any(note.startswith(base) for note in fleet.seen), seconds=90)


async def test_quota_is_lost_and_back_at_once(scenario: Scenario) -> None:
    """Evicted and reserved again within milliseconds: the old copies do not count for the new attempt (D15)."""
    async with scenario() as fleet:
        await fleet.submit(to=1)
        await _start(fleet, 1)
        old = uid(fleet.copy(1) or {})
        fleet.manager.link.change(lag=20.0)  # the state in between is never seen
        await fleet.worker(1).api.delete(JOB, JOB_KEY, propagation="Background")
        await evict(fleet.manager.api, fleet.key, clock=fleet.now)
        await fleet.until(lambda: fleet.assigned is None)
        fleet.manager.link.change(lag=0.0)
        await fleet.until(lambda: uid(fleet.copy(1) or {"metadata": {"uid": old}}) != old, seconds=120)
        await fleet.rest()

        assert fleet.assigned is None
        assert timedelta(seconds=anyio.current_time()) < timedelta(minutes=5)
