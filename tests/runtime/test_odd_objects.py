"""One odd object of a tenant: its Workload waits, is told, and loses nothing; all others go on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import attrs
import pytest
from structlog.testing import capture_logs

from multikueue.core.model.kinds import EVENT, JOB, WORKLOAD
from multikueue.core.model.names import ClusterName, Json, ObjectKey, Resource
from multikueue.kube import ClusterConfig
from multikueue.protocols import ApiClient
from multikueue.runtime.manager import Manager
from multikueue.sandbox.apiserver import DirectClient
from tests.core.door import Snapshot
from tests.runtime.fleet import Fleet, until
from tests.runtime.odd_objects import ALL, OddClient, OddObjects, Spoil
from tests.simulation.decision_mutations import decisions_raise

pytestmark = pytest.mark.looptime


def _put(field: str, value: Any) -> Spoil:
    part, _, name = field.partition(".")

    def spoil(obj: Json) -> None:
        if name:
            obj.setdefault(part, {})[name] = value
        else:
            obj[part] = value

    return spoil


SPOILS: Final = [
    pytest.param(WORKLOAD, None, id="Workload undecodable"),
    pytest.param(JOB, None, id="Job undecodable"),
    pytest.param(WORKLOAD, _put("status.conditions", [1]), id="Workload conditions"),
    pytest.param(JOB, _put("metadata.finalizers", 7), id="Job finalizers"),
]
"""What else is odd of an object is found by `core/model/test_shape.py`: here it is how one odd object is gone round."""
FEW: Final = [
    pytest.param(*spoil.values, id=spoil.id, marks=pytest.mark.gate if number > 1 else ())
    for number, spoil in enumerate(SPOILS)
]
"""Of `nox`: a Workload and a Job, each before and after a restart."""


@attrs.define(eq=False)
class Scene:
    """One worker, or the manager, shows odd objects."""

    fleet: Fleet
    worker: OddObjects
    manager: OddObjects

    @classmethod
    async def set_up(cls) -> Scene:
        fleet = await Fleet.connected("worker1")
        return cls(fleet, OddObjects(fleet.workers["worker1"]), OddObjects(fleet.manager))

    def build(self) -> Manager:
        @asynccontextmanager
        async def connect(_: ClusterName, __: ClusterConfig) -> AsyncIterator[ApiClient]:
            yield OddClient(self.worker, user="multikueue")

        return self.fleet.build(connect=connect, client=OddClient(self.manager, user="multikueue"))

    async def running(self) -> dict[str, str]:
        """The UIDs of the jobs that run on the worker, by name."""
        jobs = (await DirectClient(self.worker.server).list(JOB)).items
        return {
            job["metadata"]["name"]: job["metadata"]["uid"] for job in jobs if (job.get("status") or {}).get("active")
        }

    async def until_running(self, *names: str) -> None:
        async def holds() -> bool:
            return sorted(await self.running()) == sorted(names)

        await until(holds, within=100)

    async def workload_of(self, job: str) -> Json:
        """The manager's Workload."""
        workloads = (await self.fleet.admin.list(WORKLOAD)).items
        return next(workload for workload in workloads if workload["metadata"]["ownerReferences"][0]["name"] == job)

    async def name(self, resource: Resource, job: str) -> str:
        """What the object of a kind is called that belongs to a job."""
        return job if resource == JOB else str((await self.workload_of(job))["metadata"]["name"])

    async def warnings(self) -> list[str]:
        """The notes of warnings about Workloads."""
        events = (await self.fleet.admin.list(EVENT)).items
        return [
            event["note"] for event in events if event["regarding"]["kind"] == "Workload" and event["type"] == "Warning"
        ]

    async def until_told(self, *words: str) -> None:
        async def holds() -> bool:
            return any(all(word in note for word in words) for note in await self.warnings())

        await until(holds, within=100)

    async def until_removed(self, job: str) -> None:
        """Delete a job of the manager: its copy goes."""
        await self.fleet.admin.delete(JOB, ObjectKey("default", job), propagation="Background")

        async def gone() -> bool:
            return job not in await self.running()

        await until(gone, within=300)

    async def check(self, job: str) -> tuple[str, str]:
        """State of the admission check, and the worker."""
        status = (await self.workload_of(job))["status"]
        return status["admissionChecks"][0]["state"], status.get("clusterName", "")


async def _with_one_spoilt(
    scene: Scene,
    place: OddObjects,
    resource: Resource,
    how: Spoil,
    check: Callable[[Scene, Resource, str, dict[str, str]], Awaitable[None]],
    *,
    restarted: bool,
) -> None:
    """Have a job run, spoil an object of it, while the daemon runs or before it starts again, and look."""
    async with scene.fleet.kueues():
        async with scene.fleet.running(scene.build()):
            await scene.fleet.submit("first")
            await scene.until_running("first")
            before = await scene.running()
            name = await scene.name(resource, "first")
            if not restarted:
                await place.spoil(resource, name, how)
                await check(scene, resource, name, before)
        if restarted:
            await place.spoil(resource, name, how)
            async with scene.fleet.running(scene.build()):
                await check(scene, resource, name, before)


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize(("resource", "how"), FEW)
async def test_an_odd_copy_on_a_worker(resource: Resource, how: Spoil, restarted: bool) -> None:
    """An hour later, and after a restart, its job runs on; that of somebody else is dispatched to the same worker."""
    scene = await Scene.set_up()
    await _with_one_spoilt(scene, scene.worker, resource, how, _is_left_alone, restarted=restarted)


async def _is_left_alone(scene: Scene, resource: Resource, name: str, before: dict[str, str]) -> None:
    await scene.fleet.submit("second")
    await scene.until_running("first", "second")
    await scene.until_told('Worker cluster "worker1"', f'{resource.gvk.kind} "{name}" cannot be read')
    await anyio.sleep(3600)
    assert (await scene.running())["first"] == before["first"]
    assert await scene.check("first") == ("Ready", "worker1")
    assert (await scene.fleet.active())["message"] == "Connected"
    await scene.worker.mend(resource, name)
    await scene.until_removed("first")
    await scene.until_running("second")


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize(("resource", "how"), FEW)
async def test_an_odd_object_of_the_manager(resource: Resource, how: Spoil, restarted: bool) -> None:
    """Its copies stay, though nothing can be decided about them; it is told on the Workload."""
    scene = await Scene.set_up()
    await _with_one_spoilt(scene, scene.manager, resource, how, _goes_on_without, restarted=restarted)


async def _goes_on_without(scene: Scene, resource: Resource, name: str, before: dict[str, str]) -> None:
    await scene.fleet.submit("second")
    await scene.until_running("first", "second")
    await scene.until_told(f'{resource.gvk.kind} "{name}" cannot be read')
    await anyio.sleep(3600)
    assert (await scene.running())["first"] == before["first"]
    await scene.manager.mend(resource, name)
    await scene.until_removed("first")
    await scene.until_running("second")


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_job_whose_workload_is_gone_is_waited_for_where_its_copies_cannot_be_read(restarted: bool) -> None:
    """For as long as for a lost worker: it was waited for without end, and Kueue makes the next Workload after that. No
    Kueue runs meanwhile, which would write on its job."""
    scene = await Scene.set_up()
    fleet, key = scene.fleet, ObjectKey("default", "first")

    async def active() -> int:
        return int(((await fleet.admin.get(JOB, key)).get("status") or {}).get("active") or 0)

    async def stop() -> None:
        await fleet.admin.merge_patch(JOB, key, {"spec": {"suspend": True}})
        workload = ObjectKey.of(await fleet.workload())
        await fleet.admin.merge_patch(WORKLOAD, workload, {"metadata": {"finalizers": None}})
        await fleet.admin.delete(WORKLOAD, workload, propagation="Background")

    async with fleet.running(scene.build()):
        async with fleet.kueues():
            await fleet.submit("first")
            await scene.until_running("first")
            await until(active)
        await scene.worker.spoil(WORKLOAD, await scene.name(WORKLOAD, "first"), None)
        if not restarted:
            await stop()
            await _is_waited_for(fleet, active)
    if restarted:
        await stop()
        async with fleet.running(scene.build()):
            await _is_waited_for(fleet, active)


async def _is_waited_for(fleet: Fleet, active: Callable[[], Awaitable[int]]) -> None:
    await anyio.sleep(14 * 60)
    assert await active() == 1
    events = [event for event in (await fleet.admin.list(EVENT)).items if event["regarding"]["kind"] == "Job"]
    assert any("it may still run a job whose Workload is gone" in event["note"] for event in events)
    await anyio.sleep(2 * 60)
    assert await active() == 0


async def test_what_a_tenant_of_a_worker_names_like_a_workload_keeps_nobody_from_it() -> None:
    """Odd Workloads of their names with our label: the other worker gets them."""
    fleet = await Fleet.connected("worker1", "worker2")
    odd = OddObjects(fleet.workers["worker1"], {("Workload", ALL): _put("status", "x")})

    @asynccontextmanager
    async def connect(name: ClusterName, config: ClusterConfig) -> AsyncIterator[ApiClient]:
        if name == "worker1":
            yield OddClient(odd, user="multikueue")
        else:
            async with fleet.client(name, config) as client:
                yield client

    async with fleet.kueues(), fleet.running(fleet.build(connect=connect)):
        await fleet.submit("first")

        async def runs() -> bool:
            return list(await fleet.running_on()) == ["worker2"]

        await until(runs, within=200)


async def test_a_plan_that_always_raises_is_told_and_others_go_on() -> None:
    """Whatever the workers show: then something of the manager's is to blame."""
    scene = await Scene.set_up()

    def is_bad(seen: Snapshot) -> bool:
        return seen.workload is not None and "bad" in seen.key.name

    with decisions_raise(is_bad), capture_logs() as logged:  # the tracebacks, which take long to print
        async with scene.fleet.kueues(), scene.fleet.running(scene.build()):
            await scene.fleet.submit("bad")
            await scene.fleet.submit("good")
            await scene.until_running("good")
            await scene.until_told("It cannot be decided what to do (ZeroDivisionError)")
            assert not any("secret" in note for note in await scene.warnings())
    assert any(isinstance(entry.get("exc_info"), ZeroDivisionError) for entry in logged)


async def test_a_plan_that_raises_for_a_worker_is_told_and_another_one_gets_it() -> None:
    """The second net: the traceback is in the log, not on the Workload."""
    fleet = await Fleet.connected("worker1", "worker2")

    def shows_it(seen: Snapshot) -> bool:
        worker = seen.worker("worker1")
        return worker is not None and worker.copy is not None

    with decisions_raise(shows_it), capture_logs() as logged:
        async with fleet.kueues(), fleet.running(fleet.build()):
            await fleet.submit("first")

            async def runs() -> bool:
                return list(await fleet.running_on()) == ["worker2"]

            await until(runs, within=200)
            await anyio.sleep(60)
            notes = [event["note"] for event in (await fleet.admin.list(EVENT)).items]
    refusals = [note for note in notes if 'Worker cluster "worker1"' in note and "cannot be used" in note]
    assert refusals
    assert not any("secret" in note for note in notes)
    left_out = [line for line in logged if line["event"] == "worker left out of a plan"]
    assert [(line["cluster"], type(line["exc_info"])) for line in left_out] == [("worker1", ZeroDivisionError)], "once"
