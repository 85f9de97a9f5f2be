"""What goes wrong for hours, and what is left of it once it is over: nothing is parked, nothing sent back in vain."""

from __future__ import annotations

from datetime import timedelta

import attrs
import pytest

from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import CLUSTER_QUEUE, JOB, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.runtime.create_conflicts import REFUSAL_BACKOFF
from multikueue.sandbox.apiserver import Match, Refuse
from multikueue.sandbox.setting_up import CLUSTER_QUEUE_NAME
from multikueue.testing import job
from tests.scenarios.in_memory import MemoryFleet, MemoryPlane, in_memory
from tests.scenarios.test_workloads import JOB_KEY, _ending, _start
from tests.simulation.daemon import SETTINGS, WORKER_LOST_TIMEOUT
from tests.simulation.weather import Link

pytestmark = pytest.mark.looptime

GRACE = WORKER_LOST_TIMEOUT.total_seconds()
QUEUE = ObjectKey("", CLUSTER_QUEUE_NAME)


def link(fleet: MemoryFleet, number: int = 0) -> Link:
    """The network to a cluster; 0 is the manager."""
    plane = fleet.worker(number) if number else fleet.manager
    assert isinstance(plane, MemoryPlane)
    return plane.link


async def run_a_job(fleet: MemoryFleet) -> None:
    """Have worker1 run it, and everybody know."""
    await fleet.submit(to=1)
    await _start(fleet, 1)
    await fleet.rest(5)


def _small(job: Json) -> None:
    job["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "10m"}}


async def test_a_start_sends_nothing_back_from_a_worker_that_answers() -> None:
    """The manager was off for longer than a worker may be lost, and its objects still say that it is."""
    async with in_memory() as fleet:
        for number in range(10):
            await fleet.submit(f"job{number}", change=_small)
            await fleet.assign(1)
        link(fleet, 1).change(down=True)
        await fleet.until(lambda: fleet.active(1)[0] == "False", seconds=100)
        fleet.daemon.pause = (GRACE + 60, GRACE + 60)
        fleet.kill_daemon()
        await fleet.rest(10)
        link(fleet, 1).change(down=False, latency=0.1)
        await fleet.rest(GRACE + 120)

        assert fleet.active(1)[0] == "True"
        assert not [note for note in fleet.seen if "lost" in note]


async def test_a_job_whose_queue_loses_our_check_runs_to_its_end() -> None:
    """Kueue takes the check off Workloads that run, too. There is nobody else who could run the job."""
    async with in_memory() as fleet:
        await run_a_job(fleet)
        await fleet.manager.api.merge_patch(CLUSTER_QUEUE, QUEUE, {"spec": {"admissionChecksStrategy": None}})
        await fleet.rest(3600)
        assert not (fleet.workload or {})["status"].get("admissionChecks")
        assert fleet.job(1) is not None

        await fleet.end(1, _ending("Complete", "done"))
        await fleet.until(lambda: fleet.says("Finished"))
        assert (fleet.job() or {})["status"]["succeeded"] == 1
        await fleet.until(lambda: fleet.copy(1) is None and fleet.job(1) is None)


async def test_a_worker_that_refused_is_asked_again() -> None:
    """A namespace or a permission was missing for a minute; nothing tells us when it is there."""
    async with in_memory(1) as fleet:
        faults = link(fleet, 1).client.faults
        refusal = faults.add(Refuse(403), on=Match(verbs=("create",)))
        await fleet.submit()
        await fleet.rest(30)
        assert fleet.copy(1) is None
        faults.remove(refusal)
        await fleet.until(lambda: fleet.copy(1) is not None, seconds=REFUSAL_BACKOFF.cap)


async def test_a_worker_where_a_foreign_job_was_in_the_way_is_asked_again() -> None:
    async with in_memory(1) as fleet:
        await fleet.worker(1).api.create(JOB, job("job", delegated=False, queue=""))
        await fleet.submit()
        await fleet.admit(1)
        await fleet.rest(30)
        await fleet.worker(1).api.delete(JOB, JOB_KEY, propagation="Background")
        await fleet.until(lambda: fleet.copy(1) is not None, seconds=REFUSAL_BACKOFF.cap)
        await fleet.assign(1)


@pytest.mark.parametrize(
    ("happens", "words", "within"),
    [
        ("Evicted", "evicted on worker cluster", 10.0),
        ("", "Admitting remote lost", GRACE),
        ("gone", "Admitting remote lost", GRACE),
    ],
    ids=["evicted there", "runs on", "gone there"],
)
async def test_a_job_whose_kind_is_lost_on_its_worker_is_not_held_for_ever(
    happens: str, words: str, within: float
) -> None:
    """Its CRD or a permission is gone. The Workload can still be seen."""
    async with in_memory() as fleet:
        await run_a_job(fleet)
        link(fleet, 1).client.faults.add(Refuse(403), on=Match(verbs=("list", "watch"), resource="jobs"))
        link(fleet, 1).cut()
        await fleet.rest(30)
        if happens == "Evicted":
            await fleet.say(1, "Evicted", "!QuotaReserved", reason="Preempted")
        elif happens:
            await fleet.worker(1).api.delete(WORKLOAD, fleet.key)
        await fleet.until(lambda: any(words in said for said in fleet.seen), seconds=within)
        if not happens:  # the worker's Kueue stops it, when we ask it to
            await fleet.until(lambda: is_true(fleet.copy(1) or {}, "DeactivationTarget"))
            await fleet.say(1, "Evicted", "!QuotaReserved", reason="Deactivated")
        await fleet.until(lambda: fleet.copy(2) is not None)
        await fleet.assign(2)


async def test_nominations_of_somebody_else_bar_nobody_from_being_recorded() -> None:
    """The API server refuses a clusterName beside them, and leaving them out gives up only our own."""
    async with in_memory() as fleet:
        link(fleet).change(down=True)
        await fleet.submit()
        named = {"status": {"nominatedClusterNames": ["worker1", "worker2"]}}
        await fleet.manager.user("somebody").merge_patch(WORKLOAD, fleet.key, named, subresource="status")
        link(fleet).change(down=False)
        await fleet.until(lambda: fleet.copy(1) is not None, seconds=90)
        await fleet.assign(1)


@pytest.mark.parametrize("interval", [60, 0], ids=["collecting", "not collecting"])
async def test_a_job_made_again_under_its_name_runs_as_soon_as_the_old_one_is_gone(interval: int) -> None:
    """A finalizer on the worker holds the old copy; nothing that changes names the new Workload."""
    settings = attrs.evolve(SETTINGS, gc_interval=timedelta(seconds=interval))
    async with in_memory(1, settings=settings) as fleet:
        await fleet.submit(to=1)
        held = {"metadata": {"finalizers": ["example.com/slow"]}}
        await fleet.worker(1).api.merge_patch(JOB, JOB_KEY, held)
        await fleet.manager.api.delete(JOB, JOB_KEY, propagation="Background")
        await fleet.until(lambda: fleet.workload is None)
        await fleet.submit()
        await fleet.rest(5)
        assert fleet.copy(1) is None, "its name is taken there"
        await fleet.worker(1).api.merge_patch(JOB, JOB_KEY, {"metadata": {"finalizers": None}})
        await fleet.until(lambda: fleet.copy(1) is not None, seconds=6)
        await fleet.admit(1)
        await fleet.until(lambda: fleet.assigned == "worker1", seconds=3)
