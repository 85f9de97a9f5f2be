"""`multikueue retry` of a job that a check has rejected."""

from __future__ import annotations

import anyio
import attrs
import pytest

from multikueue.adapters import AdapterRegistry
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import EVENT, WORKLOAD
from multikueue.core.model.labels import RETRY_ANNOTATION
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import annotations_of
from multikueue.core.model.workloads import check
from multikueue.sandbox.setting_up import CHECK
from multikueued.commands.retry import ask_again
from multikueued.exits import CommandError
from tests.commands.breaking import Person, asked_about, explained
from tests.runtime.fleet import Fleet, now

pytestmark = pytest.mark.looptime


async def test_a_job_of_a_kind_that_was_not_enabled_runs_once_it_is_and_somebody_retries_it() -> None:
    """Kueue has deactivated it, and correct settings alone do not revive it."""
    fleet = await Fleet.connected("worker1")
    async with fleet.kueues():
        without = attrs.evolve(fleet.build(), adapters=AdapterRegistry(()))
        async with fleet.dispatching(without):
            await fleet.submit()
            await anyio.sleep(20)
        events = [event for event in (await fleet.admin.list(EVENT)).items if event["regarding"]["kind"] == "Job"]
        (note,) = [event["note"] for event in events if event["type"] == "Warning"]
        assert note == (
            "Jobs of this kind are not dispatched, and this one is off until multikueue retry: "
            'add "batch/job" to integrations.frameworks'
        )
        async with fleet.running():
            await anyio.sleep(60)
            assert await fleet.running_on() == {}
            (wrong,) = (await explained(fleet)).findings
            assert "multikueue retry job/job" in wrong.remedy

            done = await ask_again(Person(fleet.manager), asked_about("job/job"), now())
            assert done.told.endswith("the daemon makes job/job active again")
            await anyio.sleep(20)
            assert list(await fleet.running_on()) == ["worker1"]
            key = ObjectKey.of(workload := await fleet.workload())
            assert annotations_of(workload)[RETRY_ANNOTATION] == timestamp(done.retry_at)
            await fleet.admin.merge_patch(WORKLOAD, key, {"spec": {"active": False}})
            await anyio.sleep(60)
            assert (await fleet.workload())["spec"]["active"] is False, "what was asked counts once"


async def test_a_job_that_somebody_has_deactivated_stays_so() -> None:
    """Whoever did it has the last word."""
    fleet = await Fleet.connected("worker1")
    async with fleet.kueues(), fleet.dispatching():
        await fleet.submit()
        await anyio.sleep(5)
        key = ObjectKey.of(await fleet.workload())
        await fleet.admin.merge_patch(WORKLOAD, key, {"spec": {"active": False}})
        await anyio.sleep(30)
        with pytest.raises(CommandError, match="Inactive"):
            await ask_again(Person(fleet.manager), asked_about("job/job"), now())
        assert (await fleet.workload())["spec"]["active"] is False


async def test_one_that_kueue_is_about_to_deactivate_is_asked_for_in_a_moment() -> None:
    """A loop over those that are Rejected meets it."""
    fleet = await Fleet.connected("worker1")
    async with fleet.kueues():
        await fleet.submit()
        await anyio.sleep(5)
    workload = await fleet.workload()
    told = {"name": CHECK, "state": "Rejected", "message": "no", "lastTransitionTime": timestamp(now())}
    status = {"status": {"admissionChecks": [{**(check(workload, CHECK) or {}), **told}]}}
    await fleet.admin.merge_patch(WORKLOAD, ObjectKey.of(workload), status, subresource="status")
    with pytest.raises(CommandError, match="is Rejected, and Kueue deactivates it: retry it in a moment"):
        await ask_again(Person(fleet.manager), asked_about("job/job"), now())
