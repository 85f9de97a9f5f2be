"""Workers that go away, stay away, or are there only in part."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import anyio
import attrs
import pytest

from multikueue.core.machinery.liveness import PROBE_EVERY, PROBES
from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.kinds import JOB, MULTIKUEUE_CLUSTER, WORKLOAD
from multikueue.core.model.labels import LAST_WORKER_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import annotations_of, dig
from multikueue.runtime.manager import Manager
from multikueue.runtime.workers.informers import RENEWAL
from multikueue.sandbox.apiserver import CutWatch, Delay, DirectClient, Hang, Match, Refuse, Reset, SilenceWatch
from multikueue.sandbox.kueue import evict
from tests.examples import shared
from tests.runtime.fleet import Fleet, is_active, now, until

pytestmark = pytest.mark.looptime

WORKER = ObjectKey("", "worker1")
WATCH_WORKLOADS = Match(verbs=("watch",), resource="workloads")
WATCH_JOBS = Match(verbs=("list", "watch"), resource="jobs", user="multikueue")


CALLS = Match(verbs=("get", "list", "create", "update", "patch", "delete"), user="multikueue")
"""All but watches: those that are open stay so."""


def _probed(fleet: Fleet) -> int:
    """How often worker1 was asked for Workloads: besides the first list, those are probes."""
    return fleet.requests("worker1", "list", WORKLOAD)


def lists(manager: Manager) -> int:
    """How often all Workloads of worker1 were read."""
    worker = manager.workers.get("worker1")
    assert worker is not None
    assert worker.known is not None
    return worker.known.workloads.informer.status.lists


async def test_a_worker_whose_connections_die_young_is_shown_as_lost_and_left_alone() -> None:
    """Item 36: a thousand reconnects a second, and `Connected` all the time."""
    fleet = await Fleet.connected("worker1")
    fleet.workers["worker1"].faults.add(CutWatch(), on=WATCH_WORKLOADS)
    async with fleet.running():
        await until(is_active(fleet, status="False"))
        since = (await fleet.active())["lastTransitionTime"]
        for _ in range(60):
            await anyio.sleep(10)
            assert (await fleet.active())["status"] == "False"
        assert (await fleet.active())["lastTransitionTime"] == since
        assert fleet.requests("worker1", "watch", WORKLOAD) < 20
        fleet.workers["worker1"].faults.clear()
        assert await until(is_active(fleet), within=70) < 66


async def test_a_worker_that_never_answers_is_lost_and_its_neighbour_is_not() -> None:
    fleet = await Fleet.connected("worker1", "worker2")
    fleet.workers["worker1"].faults.add(Hang())
    async with fleet.running():
        assert await until(is_active(fleet, "worker2")) < 1
        await until(is_active(fleet, status="False"))
        assert (await fleet.active())["reason"] == "ClientConnectionFailed"
        assert (await fleet.active("worker2"))["status"] == "True"
        assert await fleet.check() == ("True", "SomeActiveClusters", "Inactive clusters: [worker1]")


async def test_a_worker_that_falls_silent_is_lost_after_a_while_and_back_at_once() -> None:
    """Packets vanish: nothing is reset, nothing is closed."""
    fleet = await Fleet.connected("worker1")
    async with fleet.dispatching():
        await anyio.sleep(10)
        fleet.workers["worker1"].faults.partition("hang")
        assert 14 < await until(is_active(fleet, status="False"), within=200) <= 20.1
        await anyio.sleep(300)
        fleet.workers["worker1"].faults.heal()
        await until(is_active(fleet), within=70)
        await anyio.sleep(1)
        assert [reason for _, reason, _ in await fleet.events()] == [
            "ClusterConnected",
            "ClusterLost",
            "ClusterConnected",
        ]


async def test_a_worker_whose_storage_hangs_is_lost_twenty_seconds_after_its_last_answer() -> None:
    """Its watches stay open and send bookmarks; everything that was sent waits. Noticed after 100 s before."""
    fleet = await Fleet.connected("worker1")
    async with fleet.dispatching():
        await anyio.sleep(10)
        fleet.workers["worker1"].faults.add(Hang(), on=CALLS)
        asked = _probed(fleet)
        assert await until(is_active(fleet, status="False"), within=200) <= 20.1
        assert _probed(fleet) - asked == PROBES
        active = await fleet.active()
        assert "no answer to anything for 20 s" in active["message"]
        since = parse_timestamp(active["lastTransitionTime"])
        assert since is not None
        assert 19 <= (now() - since).total_seconds() <= 21, "the loss begins with the last answer"


async def test_a_worker_whose_answers_take_ten_seconds_is_not_lost() -> None:
    """Nor while its watches are opened anew, nor when one of them is silent for 90 s."""
    fleet = await Fleet.connected("worker1")
    async with fleet.dispatching():
        await anyio.sleep(10)
        fleet.workers["worker1"].faults.add(Delay(10.0))
        fleet.workers["worker1"].faults.add(SilenceWatch(), on=Match(verbs=("watch",)))
        fleet.workers["worker1"].faults.connections.drop()
        await anyio.sleep(3_600)
        assert (await fleet.active())["status"] == "True"
        assert [reason for _, reason, _ in await fleet.events()] == ["ClusterConnected"]


async def test_a_worker_behind_a_proxy_that_answers_in_its_place_is_lost() -> None:
    """The proxy keeps the streams and says 504; a worker that refuses what it is asked is there."""
    fleet = await Fleet.connected("worker1", "worker2")
    async with fleet.dispatching():
        await anyio.sleep(10)
        fleet.workers["worker1"].faults.add(Refuse(504), on=CALLS)
        fleet.workers["worker2"].faults.add(Refuse(429), on=CALLS)
        assert await until(is_active(fleet, status="False"), within=200) <= 20.1
        await anyio.sleep(200)
        assert (await fleet.active("worker2"))["status"] == "True"


@pytest.mark.parametrize("code", [403, 404])
async def test_a_kind_that_cannot_be_used_is_told_and_only_its_jobs_go_elsewhere(code: int) -> None:
    """No permission, or no such kind: the worker is there, and the other one gets the job."""
    fleet = await Fleet.connected("worker1", "worker2")
    fault = fleet.workers["worker1"].faults.add(Refuse(code), on=WATCH_JOBS)
    async with fleet.kueues(), fleet.running():
        await until(is_active(fleet))
        await anyio.sleep(1)
        active = await fleet.active()
        assert (active["status"], active["reason"]) == ("True", "Active")
        assert active["message"] == f"Connected; not usable for: Job.v1.batch (injected {code})"
        assert (await fleet.check())[:2] == ("True", "Active")
        await fleet.submit()
        await until(fleet.running_on)
        assert list(await fleet.running_on()) == ["worker2"]
        await anyio.sleep(1_000)
        warnings = [event for event in await fleet.events() if event[0] == "Warning"]
        assert warnings == [("Warning", "KindsNotUsable", active["message"])]
        fleet.workers["worker1"].faults.remove(fault)
        await anyio.sleep(400)
        assert (await fleet.active())["message"] == "Connected"


async def test_a_kind_that_hangs_does_not_keep_its_worker_from_connecting() -> None:
    """Item 33: kinds are opened beside each other. Jobs of that kind wait; everything else goes on."""
    fleet = await Fleet.connected("worker1")
    fleet.workers["worker1"].faults.add(Hang(), on=WATCH_JOBS)
    async with fleet.running():
        assert await until(is_active(fleet)) < 1
        assert (await fleet.active())["message"] == "Connected"


async def test_a_revoked_token_is_noticed_though_watches_go_on() -> None:
    """API servers look at credentials only when a request begins, so the deciding watch is opened anew now and then."""
    fleet = await Fleet.connected("worker1")
    async with fleet.dispatching():
        await anyio.sleep(10)
        tokens = fleet.workers["worker1"].tokens
        assert tokens is not None
        del tokens["worker1-token"]
        assert await until(is_active(fleet, status="False"), within=RENEWAL + 1) > 1
        assert "Unauthorized" in (await fleet.active())["message"]


async def test_a_watch_opened_anew_costs_one_request_and_nothing_else() -> None:
    """In an hour: twelve to fifteen, no relist, no word in the status. Beside it goes the probe of a quiet worker."""
    fleet = await Fleet.connected("worker1")
    async with fleet.dispatching() as manager:
        await anyio.sleep(10)
        before = await fleet.admin.get(MULTIKUEUE_CLUSTER, WORKER)
        asked, listed = fleet.workers["worker1"].access.requests.total(), _probed(fleet)
        await anyio.sleep(3_600)
        assert 12 <= fleet.requests("worker1", "watch", WORKLOAD) <= 18
        probes = _probed(fleet) - listed
        assert probes <= 3_600 / PROBE_EVERY
        assert fleet.workers["worker1"].access.requests.total() - asked - probes < 20
        assert lists(manager) == 1
        assert await fleet.admin.get(MULTIKUEUE_CLUSTER, WORKER) == before


async def test_a_kind_whose_watch_breaks_is_nobodys_business() -> None:
    """A stream of one kind that a proxy resets a few times: the status is not written and no event is sent for it."""
    fleet = await Fleet.connected("worker1")
    async with fleet.kueues(), fleet.dispatching():
        await fleet.submit("job")  # a kind of which nothing is there is not watched
        await anyio.sleep(10)  # until its stream is steady
        version = (await fleet.admin.get(MULTIKUEUE_CLUSTER, WORKER))["metadata"]["resourceVersion"]
        broken = fleet.workers["worker1"].faults.add(Reset(), on=WATCH_JOBS, times=4)
        fleet.workers["worker1"].faults.connections.drop()
        await until(lambda: broken.hits == 4)
        await anyio.sleep(100)

        assert (await fleet.admin.get(MULTIKUEUE_CLUSTER, WORKER))["metadata"]["resourceVersion"] == version
        assert [reason for _, reason, _ in await fleet.events()] == ["ClusterConnected"]


@attrs.frozen
class Abandoned:
    """A fleet with a job on a worker that is lost, noted by a manager that has stopped."""

    fleet: Fleet
    lost: str
    other: str
    lost_at: float
    led_until: datetime

    def next_manager(self, *, lease: bool = True) -> Manager:
        """A manager that knows from a Lease when the manager before was at work last, or does not know."""
        return attrs.evolve(self.fleet.build(), led_until=self.led_until if lease else None)

    async def runs_elsewhere(self) -> bool:
        return self.other in await self.fleet.running_on()

    async def assigned(self) -> str:
        return str(dig(await self.fleet.workload(), "status", "clusterName"))


@asynccontextmanager
async def abandoned(lost_for: float) -> AsyncIterator[Abandoned]:
    """Lost for so many seconds when the manager stops."""
    fleet = await Fleet.connected("worker1", "worker2")
    async with fleet.kueues():
        async with fleet.dispatching():
            await fleet.submit()
            await until(fleet.running_on)
            (lost,) = await fleet.running_on()
            (other,) = {"worker1", "worker2"} - {lost}
            await anyio.sleep(10)
            fleet.workers[lost].faults.add(Reset(), on=Match(user="multikueue"))
            fleet.workers[lost].faults.connections.drop()
            await until(is_active(fleet, lost, "False"))
            lost_at = anyio.current_time()
            await anyio.sleep(lost_for)
        yield Abandoned(fleet, lost, other, lost_at, now())


async def test_a_restart_does_not_begin_the_grace_again() -> None:
    """Item 39: the loss is on the object. Only the minute without anybody is added, however often it restarts."""
    async with abandoned(lost_for=300) as after:
        await anyio.sleep(60)  # nobody there
        async with after.fleet.running(after.next_manager()):
            await anyio.sleep(1)
        again = attrs.evolve(after, led_until=now())
        async with after.fleet.running(again.next_manager()):
            await anyio.sleep(550)
            assert await after.assigned() == after.lost
            await until(after.runs_elsewhere, within=100)
            assert 950 < anyio.current_time() - after.lost_at < 975


@pytest.mark.parametrize("step", shared([3_600, -120], lambda step: "forward" if step > 0 else "back"))
async def test_a_step_of_the_wall_clock_does_not_end_the_grace(step: int) -> None:
    """It ended after 60 s instead of 900; a restart goes on from what the object says by the clock as it is now."""
    async with abandoned(lost_for=10) as after:
        fleet, stepped = after.fleet, SteppedClock()
        began = anyio.current_time()
        async with fleet.running(attrs.evolve(after.next_manager(), clock=stepped)):
            await anyio.sleep(60)
            stepped.by = timedelta(seconds=step)
            await anyio.sleep(120)
            noted = parse_timestamp((await fleet.active(after.lost))["lastTransitionTime"])
            assert noted is not None
            assert abs((stepped() - noted).total_seconds() - 190) < 15
        async with fleet.running(attrs.evolve(after.next_manager(), clock=stepped, led_until=stepped())):
            await anyio.sleep(680)
            assert await after.assigned() == after.lost
            await until(after.runs_elsewhere, within=60 + max(-step, 0))
            assert 880 < anyio.current_time() - began < 910 + max(-step, 0)


@attrs.define
class SteppedClock:
    """A wall clock that somebody sets."""

    by: timedelta = timedelta(0)

    def __call__(self) -> datetime:
        return now() + self.by


@pytest.mark.parametrize("lease", shared([True, False], {True: "lease", False: "no lease"}.__getitem__))
async def test_a_worker_that_was_away_as_long_as_we_were_keeps_its_jobs(lease: bool) -> None:
    """They were sent elsewhere in the second of the start: the loss had counted on through our absence."""
    async with abandoned(lost_for=600) as after:
        await anyio.sleep(7_200)
        began = anyio.current_time()
        async with after.fleet.running(after.next_manager(lease=lease)):
            left = 900 - 600 if lease else 900
            await anyio.sleep(left - 20)
            assert await after.assigned() == after.lost
            await until(after.runs_elsewhere, within=60)
            assert left - 10 < anyio.current_time() - began < left + 15


@pytest.mark.gate
async def test_an_earlier_attempt_is_waited_for_without_the_time_in_which_nobody_watched() -> None:
    """It was evicted while its worker was lost, and both were away: nobody knows whether the worker was back."""
    async with abandoned(lost_for=300) as after:
        fleet = after.fleet
        async with fleet.running(after.next_manager()):
            await anyio.sleep(10)
            await evict(fleet.admin, ObjectKey.of(await fleet.workload()), clock=now)
            await anyio.sleep(60)
            noted = annotations_of(await fleet.workload())[LAST_WORKER_ANNOTATION]
            assert (noted, await after.runs_elsewhere()) == (after.lost, False)
        led_until = now()
        await anyio.sleep(7_200)
        began = anyio.current_time()
        async with fleet.running(attrs.evolve(fleet.build(), led_until=led_until)):
            await until(after.runs_elsewhere, within=700)
            assert 500 < anyio.current_time() - began < 560


async def test_an_earlier_attempt_is_waited_for_by_the_next_process_though_its_worker_was_removed() -> None:
    """The Workload alone names the worker then: nobody has a connection to it, and no memory of it."""
    async with abandoned(lost_for=300) as after:
        fleet = after.fleet
        async with fleet.running(after.next_manager()):
            await anyio.sleep(10)
            await evict(fleet.admin, ObjectKey.of(await fleet.workload()), clock=now)
            await anyio.sleep(60)
            assert annotations_of(await fleet.workload())[LAST_WORKER_ANNOTATION] == after.lost
        await fleet.admin.delete(MULTIKUEUE_CLUSTER, ObjectKey("", after.lost))
        began = anyio.current_time()
        async with fleet.running():
            await anyio.sleep(800)
            assert not await after.runs_elsewhere()
            await until(after.runs_elsewhere, within=200)
            assert anyio.current_time() - began > 880


async def test_no_job_is_sent_elsewhere_before_an_attempt_of_this_process_has_failed() -> None:
    """The time is over: the manager was stopped in the last second. The worker answers, though it takes 25 s."""
    async with abandoned(lost_for=895) as after:
        after.fleet.workers[after.lost].faults.clear()
        after.fleet.workers[after.lost].faults.add(Delay(25.0), on=Match(verbs=("list",), user="multikueue"))
        (before,) = (await after.fleet.running_on()).values()
        async with after.fleet.running(after.next_manager()):
            await anyio.sleep(20)
            assert await after.assigned() == after.lost
            after.fleet.workers[after.lost].faults.clear()
            await until(is_active(after.fleet, after.lost))
            await anyio.sleep(1_000)
            assert await after.fleet.running_on() == {after.lost: before}


@pytest.mark.parametrize("timeout", [40.0, 900.0])
async def test_a_worker_that_is_back_just_before_its_time_is_over_keeps_its_jobs(timeout: float) -> None:
    """It was back 12 s before, and the back-off led past that: its jobs ran elsewhere, too."""
    fleet = await Fleet.connected("worker1", "worker2")
    async with fleet.kueues(), fleet.dispatching(fleet.build(timeout)):
        await fleet.submit()
        await until(fleet.running_on)
        before = await fleet.running_on()
        (lost,) = before
        await anyio.sleep(10)
        fleet.workers[lost].faults.add(Reset(), on=Match(user="multikueue"))
        fleet.workers[lost].faults.connections.drop()
        await until(is_active(fleet, lost, "False"))
        await anyio.sleep(timeout - 12)
        asked = fleet.requests(lost, "list", WORKLOAD)
        fleet.workers[lost].faults.clear()
        await until(is_active(fleet, lost), within=10)
        assert fleet.requests(lost, "list", WORKLOAD) - asked <= 3
        await anyio.sleep(120)
        assert await fleet.running_on() == before


@pytest.mark.parametrize("readable", shared([True, False], {True: "get", False: "no get"}.__getitem__))
async def test_a_creation_that_a_proxy_repeats_is_not_offered_elsewhere(
    readable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second request is answered 409, and the worker drops before its watch shows the job: it ran twice in 1 s."""
    fleet, create = Fleet.of("worker1", "worker2"), DirectClient.create
    repeated: list[str] = []
    others = ("list", "watch", "create", "patch", "delete", *(() if readable else ("get",)))

    async def twice(self: DirectClient, resource: Resource, obj: Json) -> Json:
        made = await create(self, resource, obj)
        if resource != JOB or repeated or self.registry is fleet.manager.registry:
            return made
        (name,) = (name for name, server in fleet.workers.items() if server.registry is self.registry)
        repeated.append(name)
        try:
            return await create(self, resource, obj)
        finally:
            fleet.workers[name].faults.add(Reset(), on=Match(verbs=others, user="multikueue"))
            fleet.workers[name].faults.connections.drop()

    monkeypatch.setattr(DirectClient, "create", twice)
    await fleet.connect()
    for worker in fleet.workers.values():
        worker.faults.add(SilenceWatch(), on=Match(verbs=("watch",), resource="jobs", user="multikueue"))
    async with fleet.kueues(), fleet.dispatching():
        await fleet.submit()
        await until(fleet.running_on)
        await anyio.sleep(600)
        assert list(await fleet.running_on()) == repeated
        fleet.workers[repeated[0]].faults.clear()
        await anyio.sleep(600)
        assert list(await fleet.running_on()) == repeated
