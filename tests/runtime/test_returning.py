"""A worker that returns with what has moved away: that is stopped first, before anything is read there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast

import anyio
import anyio.abc
import attrs
import pytest
from structlog.testing import capture_logs

from multikueue.core.machinery.backoff import CONNECTION_BACKOFF
from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.names import ClusterName, ObjectKey, Resource
from multikueue.core.model.objects import dig
from multikueue.errors import Forbidden
from multikueue.kube import ClusterConfig
from multikueue.kube.informers.reflector import NOTHING
from multikueue.protocols import ApiClient, ObjectList
from multikueue.runtime.manager import Manager
from multikueue.runtime.workers import returning
from multikueue.runtime.workers.moved_away import Suspect, Suspects
from multikueue.runtime.workers.returning import ASK_DEADLINE, HOLD_UP, ReturningWorker
from multikueue.sandbox.apiserver import Delay, DirectClient, Hang, Match, Refuse, Reset
from multikueue.sandbox.apiserver.faults import Effect
from multikueue.testing.waiting import background
from tests.runtime.fleet import Fleet, is_active, until

pytestmark = pytest.mark.looptime

US = Match(user="multikueue")
KEY = ObjectKey("default", "job")
LOST_AFTER = 15.0
FOUND_WITHIN = 2.1
STEADY = CONNECTION_BACKOFF.reset_after + 1
"""Seconds for which a watch must last until a lost worker counts as connected."""


class Recording(DirectClient):
    """Notes what is asked: when, the verb, the kind and the name."""

    asked: list[tuple[float, str, str, str]]

    async def _call(self, verb: str, resource: Resource, key: ObjectKey, *args: Any, **options: Any) -> Any:
        if verb != "list":
            self.asked.append((anyio.current_time(), verb, resource.plural, key.name))
        return await super()._call(verb, resource, key, *args, **options)

    async def list(self, resource: Resource, **options: Any) -> ObjectList:
        if options.get("label_selector") == NOTHING or options.get("limit") == 1:
            self.asked.append((anyio.current_time(), "probe", resource.plural, ""))
            return await super().list(resource, **options)
        self.asked.append((anyio.current_time(), "list", resource.plural, ""))
        return await super().list(resource, **options)

    async def watch(self, resource: Resource, *args: Any, **options: Any) -> None:
        self.asked.append((anyio.current_time(), "watch", resource.plural, ""))
        await super().watch(resource, *args, **options)


@attrs.define(eq=False)
class Away:
    """A fleet in which a worker is lost, and its job has gone on elsewhere; the old one runs on."""

    fleet: Fleet
    timeout: float
    lost: str = ""
    other: str = ""
    asked: dict[str, list[tuple[float, str, str, str]]] = attrs.field(factory=dict)
    tasks: anyio.abc.TaskGroup = attrs.field(init=False)
    _run: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)

    async def restart(self) -> None:
        """Another process takes over, if there was one."""
        self._run.cancel()
        self._run = anyio.CancelScope()
        await self.tasks.start(self._manage, self.fleet.build(self.timeout, connect=self.connect))

    async def _manage(self, manager: Manager, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        with self._run:
            await manager.run(task_status=task_status)

    def connect(self, name: ClusterName, config: ClusterConfig) -> AbstractAsyncContextManager[ApiClient]:
        del config

        @asynccontextmanager
        async def opened() -> AsyncIterator[ApiClient]:
            client = Recording(self.fleet.workers[name], user="multikueue")
            client.asked = self.asked.setdefault(name, [])
            yield client

        return opened()

    @property
    def admin(self) -> DirectClient:
        """The lost worker's."""
        return DirectClient(self.fleet.workers[self.lost])

    def lose(self, effect: Effect) -> None:
        """Have the worker answer us nothing any more."""
        self.fleet.workers[self.lost].faults.add(effect, on=US)
        self.fleet.workers[self.lost].faults.connections.drop()

    def give_back(self) -> list[tuple[float, str, str, str]]:
        """The worker answers again; what it is asked from now on."""
        self.fleet.workers[self.lost].faults.clear()
        self.asked[self.lost].clear()
        return self.asked[self.lost]

    async def stopped(self) -> bool:
        return self.lost not in await self.fleet.running_on()

    async def replace_job(self) -> str:
        """Make another job in place of the copy; its UID."""
        job = await self.admin.get(JOB, KEY)
        await self.admin.delete(JOB, KEY, propagation="Background")
        await until(lambda: self._is_gone(job["metadata"]["uid"]))
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
        made = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": KEY.name, "namespace": KEY.namespace},
            "spec": {"template": template},
        }
        return str((await self.admin.create(JOB, made))["metadata"]["uid"])

    async def _is_gone(self, uid: str) -> bool:
        return uid not in [job["metadata"]["uid"] for job in (await self.admin.list(JOB)).items]


def of_copies(asked: list[tuple[float, str, str, str]]) -> list[tuple[str, str]]:
    """What was read and deleted, in order; not what is asked of a server only to hear it."""
    verbs, kinds = ("get", "delete", "list", "watch"), ("workloads", "jobs")
    return [(verb, kind) for _, verb, kind, _ in asked if verb in verbs and kind in kinds]


@asynccontextmanager
async def moved(effect: Effect | None = None, timeout: float = LOST_AFTER, jobs: int = 1) -> AsyncIterator[Away]:
    """A job has moved away from its worker, which is lost for a minute more; with a longer timeout it waits for it."""
    away = Away(await Fleet.connected("worker1", "worker2"), timeout)
    fleet = away.fleet
    async with fleet.kueues(), background() as away.tasks:
        await away.restart()
        for name in fleet.workers:
            await until(is_active(fleet, name))
        for number in range(jobs):
            await fleet.submit(f"job{number or ''}")
        await until(fleet.running_on)
        await anyio.sleep(10)
        away.lost, *_ = await fleet.running_on()
        (away.other,) = {"worker1", "worker2"} - {away.lost}
        away.lose(effect or Reset())
        await until(is_active(fleet, away.lost, "False"))
        if timeout == LOST_AFTER:
            await until(lambda: _runs_on(away, away.other))
        await anyio.sleep(60)
        yield away


async def _runs_on(away: Away, worker: str) -> bool:
    return worker in await away.fleet.running_on()


async def _runs_on_lost(away: Away) -> bool:
    return await _runs_on(away, away.lost)


@pytest.mark.parametrize("effect", [Reset(), Hang()], ids=["refused", "silent"])
async def test_what_has_moved_away_is_stopped_before_anything_is_read(effect: Effect) -> None:
    """Found E7: it ran for 8 s beside the new one. Each object is read once, and deleted before its kind is."""
    async with moved(effect) as away:
        await anyio.sleep(0.5)  # it returns between two questions: a list under way would be answered first
        asked = away.give_back()
        assert await until(away.stopped) <= FOUND_WITHIN
        assert of_copies(asked)[:3] == [("get", "workloads"), ("get", "jobs"), ("delete", "jobs")]
        await until(is_active(away.fleet, away.lost))
        await until(lambda: _is_empty(away))
        assert await _runs_on(away, away.other)
        assert [kind for verb, kind in of_copies(asked) if verb == "get"] == ["workloads", "jobs"]


async def test_it_is_found_by_a_process_that_has_never_seen_the_worker() -> None:
    """What the Workload says of where it ran before is enough."""
    async with moved() as away:
        await away.restart()
        await anyio.sleep(30)
        asked = away.give_back()
        assert await until(away.stopped) <= FOUND_WITHIN
        assert of_copies(asked)[:3] == [("get", "workloads"), ("get", "jobs"), ("delete", "jobs")]


async def test_what_was_deleted_while_its_worker_was_lost_is_stopped_first() -> None:
    async with moved(timeout=900) as away:
        await away.fleet.admin.delete(JOB, KEY, propagation="Background")
        await anyio.sleep(60)
        asked = away.give_back()
        assert await until(away.stopped) <= FOUND_WITHIN
        assert of_copies(asked)[:3] == [("get", "workloads"), ("get", "jobs"), ("delete", "jobs")]


async def test_what_is_being_evicted_is_stopped_and_its_status_still_synced() -> None:
    """Its quota is held until its job is seen to have stopped, so it is not deleted unseen."""
    async with moved(timeout=900) as away:
        key = ObjectKey.of(await away.fleet.workload())
        await away.fleet.admin.merge_patch(WORKLOAD, key, {"spec": {"active": False}})
        await anyio.sleep(60)
        asked = away.give_back()
        assert await until(away.stopped) <= FOUND_WITHIN
        assert ("delete", "jobs") not in of_copies(asked)
        await until(lambda: _is_empty(away))
        assert not dig(await away.fleet.admin.get(JOB, KEY), "status", "active")


async def test_a_job_that_waits_for_its_worker_is_asked_for_by_nobody() -> None:
    """The attempts to connect are those of before, and what runs there runs on."""
    async with moved(timeout=900) as away:
        since, asked = anyio.current_time(), away.asked[away.lost]
        asked.clear()
        before = await away.fleet.running_on()
        await anyio.sleep(600)
        assert len([verb for _, verb, kind, _ in asked if kind == "workloads"]) <= 600 / 60 + 1
        away.give_back()
        await until(is_active(away.fleet, away.lost), within=80)
        assert [verb for verb, _ in of_copies(asked) if verb in ("get", "delete")] == []
        assert await away.fleet.running_on() == before
        assert anyio.current_time() > since


async def test_somebody_elses_job_of_that_name_is_left_alone() -> None:
    """Made there while nobody looked."""
    async with moved() as away:
        made = await away.replace_job()
        away.give_back()
        await until(is_active(away.fleet, away.lost))
        assert (await away.admin.get(JOB, KEY))["metadata"]["uid"] == made
        assert ("delete", "jobs") not in of_copies(away.asked[away.lost])


async def test_a_worker_that_hangs_again_is_connected_to_all_the_same() -> None:
    """What must not run there is looked for no longer than `HOLD_UP`; the neighbour notices nothing."""
    async with moved() as away:
        away.give_back()
        away.fleet.workers[away.lost].faults.add(Hang(), on=Match(verbs=("get",), resource="jobs", user="multikueue"))
        assert await until(is_active(away.fleet, away.lost)) <= FOUND_WITHIN + HOLD_UP + STEADY
        await until(away.stopped, within=1)


async def test_a_worker_that_is_slow_goes_the_usual_way() -> None:
    """Each answer takes longer than it is waited for: that keeps nobody from reading the worker."""
    async with moved() as away:
        away.give_back()
        away.fleet.workers[away.lost].faults.add(Delay(4 * ASK_DEADLINE), on=US)
        await until(away.stopped, within=120)
        assert (await away.fleet.active(away.lost))["status"] == "True"


async def test_a_worker_that_lets_nobody_in_is_not_asked_every_second() -> None:
    async with moved(Refuse(403)) as away:
        asked = away.asked[away.lost]
        asked.clear()
        await anyio.sleep(600)
        assert len([verb for _, verb, kind, _ in asked if kind == "workloads"]) <= 4 * (600 / 60 + 1)


async def test_a_lost_worker_is_asked_one_thing_at_a_time() -> None:
    """While something may be there: one small request a second, and the attempts of before."""
    async with moved() as away:
        asked = away.asked[away.lost]
        asked.clear()
        await anyio.sleep(600)
        assert 550 <= sum(verb == "get" for _, verb, _, _ in asked) <= 620
        assert {kind for _, verb, kind, _ in asked if verb == "get"} == {"workloads"}


@pytest.mark.gate
async def test_no_more_is_looked_for_than_a_bound_and_the_plan_finds_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(returning, "AT_MOST", 2)
    async with moved(jobs=8) as away:
        there = len((await away.admin.list(JOB)).items)
        assert there > 2
        asked = away.give_back()
        await anyio.sleep(FOUND_WITHIN)
        assert [verb for verb, _ in of_copies(asked)].count("delete") == 2
        await until(lambda: _is_empty(away))
        assert [verb for verb, _ in of_copies(asked)].count("get") == 4


async def test_a_defect_costs_no_more_than_the_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(self: Suspects, *_: Any) -> Any:
        raise ZeroDivisionError

    async with moved() as away:
        monkeypatch.setattr(Suspects, "stop", stop)
        with capture_logs() as logged:
            away.give_back()
            await until(lambda: _is_empty(away))
        assert [line["event"] for line in logged].count("unexpected exception") == 1
        assert (await away.fleet.active(away.lost))["status"] == "True"


async def _is_empty(away: Away) -> bool:
    return not [*(await away.admin.list(JOB)).items, *(await away.admin.list(WORKLOAD)).items]


async def test_a_refusal_that_comes_after_the_back_off_is_over_ends_it() -> None:
    """As while a real API server starts: it took that for a defect, and the worker was away for another minute."""

    class Refusing:
        async def get(self, *_: Any) -> Any:
            await anyio.sleep(1)
            raise Forbidden("RBAC: not read yet")

    suspects = [Suspect(KEY, KEY, ())]
    worker = ReturningWorker(cast(ApiClient, Refusing()), lambda: cast(Suspects, suspects))
    began = anyio.current_time()
    await worker.sleep(0.5)
    assert anyio.current_time() - began == pytest.approx(1)
