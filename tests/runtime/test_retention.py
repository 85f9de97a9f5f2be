"""`retention.finished`: an ended job stays on its worker for a while, also when the daemon is started anew."""

from __future__ import annotations

from datetime import timedelta

import anyio
import pytest

from multikueue import PlanSettings
from multikueue.adapters import BUILTIN, AdapterRegistry
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import with_value
from multikueue.core.model.workloads import is_finished
from multikueue.runtime.manager import Manager, ManagerSettings
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.jobs.deciding import DURATION_ANNOTATION, OUTCOME_ANNOTATION
from multikueue.testing import job
from tests.runtime.fleet import Fleet, now, until
from tests.simulation.decision_mutations import few_failed_jobs_are_kept

pytestmark = pytest.mark.looptime


def daemon(fleet: Fleet, **kept: float) -> Manager:
    """A manager that keeps ended jobs for so long."""
    plan = PlanSettings(finished_retention=timedelta(**kept))
    client = DirectClient(fleet.manager, user="multikueue")
    return Manager(client, AdapterRegistry(BUILTIN), ManagerSettings(plan=plan), fleet.client, clock=now)


async def left(fleet: Fleet) -> tuple[int, int]:
    """How many job and Workload copies are on the workers."""
    there = [DirectClient(server) for server in fleet.workers.values()]
    jobs = [len((await client.list(JOB)).items) for client in there]
    return sum(jobs), sum([len((await client.list(WORKLOAD)).items) for client in there])


async def run_to_its_end(fleet: Fleet) -> None:
    made = with_value(job(), ("metadata", "annotations", DURATION_ANNOTATION), "5s")
    await fleet.admin.create(JOB, made)

    async def ended() -> bool:
        workloads = (await fleet.admin.list(WORKLOAD)).items
        return bool(workloads) and all(map(is_finished, workloads))

    await until(ended, within=60)


async def test_the_winners_copies_stay_as_long_as_is_promised_though_the_daemon_is_started_anew() -> None:
    fleet = await Fleet.connected("worker1", "worker2")
    async with fleet.kueues():
        async with fleet.running(daemon(fleet, minutes=30)):
            await run_to_its_end(fleet)
            await anyio.sleep(600)
            assert await left(fleet) == (1, 1)
        async with fleet.running(daemon(fleet, minutes=30)):
            await anyio.sleep(1100)
            assert await left(fleet) == (1, 1)
            await anyio.sleep(200)
            assert await left(fleet) == (0, 0)


async def test_copies_of_failed_jobs_are_counted_in_their_namespace() -> None:
    """The third of three jobs that fail goes at once; the others stay for their hour."""
    fleet = await Fleet.connected("worker1")
    plan = PlanSettings(failed_retention=timedelta(hours=1))
    client = DirectClient(fleet.manager, user="multikueue")
    keeping = Manager(client, AdapterRegistry(BUILTIN), ManagerSettings(plan=plan), fleet.client, clock=now)
    with few_failed_jobs_are_kept(2):
        async with fleet.kueues(), fleet.running(keeping):
            for number in range(3):
                made = with_value(job(f"job-{number}"), ("metadata", "annotations", DURATION_ANNOTATION), "5s")
                await fleet.admin.create(JOB, with_value(made, ("metadata", "annotations", OUTCOME_ANNOTATION), "fail"))
                await anyio.sleep(60)
            assert await left(fleet) == (2, 2)
            await anyio.sleep(3600)
            assert await left(fleet) == (0, 0)


async def test_what_ended_once_more_goes_though_the_manager_takes_no_other_end() -> None:
    """A Job ends once: the copies of the later attempt used to stay, and to hold quota, for good."""
    fleet = await Fleet.connected("worker1")
    async with fleet.kueues():
        async with fleet.running():
            await fleet.admin.create(JOB, with_value(job(), ("metadata", "annotations", DURATION_ANNOTATION), "5s"))
            await until(fleet.running_on)
        await anyio.sleep(20)
        met = [{"type": kind, "status": "True"} for kind in ("SuccessCriteriaMet", "Complete")]
        ended = {"conditions": met, "succeeded": 1, "active": 0, "ready": 0, "completionTime": timestamp(now())}
        await fleet.admin.merge_patch(JOB, ObjectKey("default", "train"), {"status": ended}, subresource="status")
        await until(fleet.finished, within=30)
        async with fleet.running():
            await anyio.sleep(60)
            assert await left(fleet) == (0, 0)
