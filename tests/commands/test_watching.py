"""When the leader looks at its workers, how often it writes what it sees, what a hung one costs: in virtual time."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import attrs
import pytest

from multikueue.adapters import BUILTIN
from multikueue.core.model.kinds import CLUSTER_QUEUE, CONFIG_MAP, JOB
from multikueue.core.model.labels import ATTEMPT_ANNOTATION, ORIGIN_LABEL, PREBUILT_WORKLOAD
from multikueue.core.model.marks import Marks
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.errors import ApiError, Forbidden, NotFound
from multikueue.kube import ClusterConfig
from multikueue.kube.served_kinds import ServedKind
from multikueue.protocols import ObjectList
from multikueue.runtime.manager import Manager
from multikueue.sandbox.apiserver import DirectClient, Hang, Match, Refuse
from multikueue.sandbox.setting_up import CLUSTER_QUEUE_NAME, KUEUE_NAMESPACE
from multikueued.doctor.probe import ProbeResult
from multikueued.doctor.publisher import EVERY, LATELY, LOOKS, SOON, FindingsPublisher
from multikueued.doctor.worker_reader import DEADLINE
from multikueued.reports.published import Published, published_in
from multikueued.reports.worker_facts import ClockBound
from multikueued.run.leader_tasks import reached
from multikueued.serving.reviews import SELF_REVIEW
from multikueued.settings.config import Settings
from tests.commands.breaking import Person, Refusals
from tests.commands.diagnosing import MANAGER, Reviewing, visited
from tests.runtime.fleet import Fleet, now

pytestmark = pytest.mark.looptime

KEY = ObjectKey(KUEUE_NAMESPACE, "multikueue-findings")
INTERVAL = 600.0
CONTAINERS: list[Json] = [{"name": "main", "image": "x"}]


@attrs.define(eq=False)
class Scene:
    """A fleet whose leader looks at it."""

    fleet: Fleet
    manager: Manager
    looks: Counter[str]
    """How often each server was measured, which each look begins with."""

    async def published(self) -> dict[str, Published]:
        """What the ConfigMap has."""
        return published_in(await self.fleet.admin.get(CONFIG_MAP, KEY))

    def writes(self) -> int:
        """How often the ConfigMap was written."""
        return self.fleet.manager.requests["admin", "patch", "configmaps"]


@asynccontextmanager
async def scene(
    *workers: str, refusals: Refusals | None = None, manager_refusals: Refusals | None = None
) -> AsyncIterator[Scene]:
    fleet, looks = Fleet.of(*workers), Counter[str]()
    await fleet.connect()

    async def measure(config: ClusterConfig) -> ProbeResult:
        looks[config.server.removeprefix("https://").partition(":")[0]] += 1
        return ProbeResult(0.01, ClockBound(-0.5, 0.5))

    client: Any = Reviewing(Person(fleet.manager), manager_refusals or {})
    async with fleet.running() as manager, anyio.create_task_group() as tasks:
        settings = Settings(namespace=KUEUE_NAMESPACE)
        reach, connect = partial(reached, manager), visited(fleet, refusals or {})
        kinds = tuple(BUILTIN)
        watcher = FindingsPublisher(
            settings, kinds, client, MANAGER, reach, manager.cluster.secrets.get, now, connect, measure
        )
        await anyio.sleep(1)
        tasks.start_soon(watcher.run)
        await anyio.sleep(1)
        yield Scene(fleet, manager, looks)
        tasks.cancel_scope.cancel()


async def test_each_worker_is_looked_at_once_an_interval() -> None:
    async with scene("worker1", "worker2") as here:
        await anyio.sleep(2.5 * INTERVAL)
        assert (here.looks["worker1"], here.looks["worker2"]) == (3, 3)
        published = await here.published()
    assert published.keys() == {"worker1", "worker2"}


NO_JOBS: Refusals = {("list", "jobs"): NotFound("no such kind")}
NO_QUEUES: Refusals = {("list", "localqueues"): NotFound("no such kind")}


async def test_a_kind_that_the_manager_lacks_too_is_nothing_to_look_at_soon() -> None:
    """Few clusters serve all kinds that may be enabled: each worker was looked at every minute, for ever."""
    async with scene("worker1", refusals=NO_JOBS, manager_refusals=NO_JOBS) as here:
        await anyio.sleep(2.5 * INTERVAL)
    assert here.looks["worker1"] == 3


async def test_a_kind_that_a_worker_alone_lacks_is_looked_for_soon_in_the_first_hour() -> None:
    """Somebody may be installing it; who never means to costs a look at the usual interval. A change begins anew."""
    refusals: dict[tuple[str, str], ApiError] = dict(NO_JOBS)
    async with scene("worker1", refusals=refusals) as here:
        await anyio.sleep(LATELY)
        first = here.looks["worker1"]
        await anyio.sleep(INTERVAL)
        before = here.looks["worker1"]
        await anyio.sleep(3 * INTERVAL)
        assert here.looks["worker1"] - before == 3
        absent = refusals.pop(("list", "jobs"))
        await anyio.sleep(INTERVAL)  # it is seen with the next look
        refusals["list", "jobs"] = absent
        await anyio.sleep(INTERVAL)
        before = here.looks["worker1"]
        await anyio.sleep(5 * SOON)
        assert here.looks["worker1"] - before == 5
    assert first == pytest.approx(LATELY / SOON, abs=1)


@pytest.mark.gate
async def test_kueues_own_kinds_are_looked_for_soon_for_ever() -> None:
    """Without them no job runs there."""
    async with scene("worker1", refusals=NO_QUEUES) as here:
        await anyio.sleep(2 * LATELY)
        before = here.looks["worker1"]
        await anyio.sleep(5 * SOON)
    assert here.looks["worker1"] - before == 5


@pytest.fixture
def reviews(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """How often workers are asked for a permission, by look."""
    asked: Counter[int] = Counter()
    create = Reviewing.create

    async def counted(self: Reviewing, resource: Resource, obj: Json) -> Json:
        asked[round(anyio.current_time() / INTERVAL)] += resource == SELF_REVIEW
        return await create(self, resource, obj)

    monkeypatch.setattr(Reviewing, "create", counted)
    return asked


async def test_what_a_worker_has_granted_is_asked_for_with_every_sixth_look(reviews: Counter[int]) -> None:
    """Six requests for each kind otherwise. What it has refused is asked for with each, and all is told each time."""
    async with scene("worker1", refusals={("delete", "jobs"): Forbidden("no")}) as here:
        first = (await here.published())["worker1"].facts.permissions
        await anyio.sleep(LOOKS * INTERVAL + 60)
        last = (await here.published())["worker1"].facts.permissions
    often = round(INTERVAL / SOON)  # as it lacks something, which somebody may grant
    assert {look: reviews[look] for look in range(1, LOOKS)} == dict.fromkeys(range(1, LOOKS), often)
    assert min(reviews[0], reviews[LOOKS]) > often
    assert set(first) == set(last)


@pytest.mark.parametrize("tells", [True, False])
async def test_which_kinds_a_server_serves_is_asked_once_a_look(monkeypatch: pytest.MonkeyPatch, tells: bool) -> None:
    """A request for each of them otherwise, as where the server does not tell them together."""
    asked: Counter[str] = Counter()
    discover, served = Reviewing.discover, Reviewing.served

    async def discover_each(self: Reviewing, gvk: GVK) -> ServedKind | None:
        asked[gvk.kind] += 1
        return await discover(self, gvk)

    async def together(self: Reviewing) -> Set[GVK] | None:
        asked["all"] += 1
        if not tells:
            raise Forbidden("no")
        return await served(self)

    monkeypatch.setattr(Reviewing, "discover", discover_each)
    monkeypatch.setattr(Reviewing, "served", together)
    async with scene("worker1"):
        kinds = [kind.resource.gvk.kind for kind in BUILTIN]
        on_both = (
            {} if tells else dict.fromkeys(kinds, 2) | dict.fromkeys(("Workload", "LocalQueue", "ClusterQueue"), 1)
        )
        assert asked == {"all": 2} | on_both  # the manager, and the worker


async def test_other_credentials_are_asked_for_all_permissions(reviews: Counter[int]) -> None:
    """They may be another account's, with fewer."""
    async with scene("worker1") as here:
        await anyio.sleep(1.5 * INTERVAL)
        await here.fleet.rotate("worker1", "another")
        await anyio.sleep(2 * INTERVAL)
    assert (reviews[0] > 10, reviews[1], reviews[2], reviews[3]) == (True, 0, reviews[0], 0)


async def test_a_worker_that_is_back_is_looked_at_again() -> None:
    async with scene("worker1") as here:
        here.fleet.workers["worker1"].faults.connections.drop()
        hung = here.fleet.workers["worker1"].faults.add(Hang())
        await anyio.sleep(60)
        assert await here.published() == {}  # not connected: its condition says why
        here.fleet.workers["worker1"].faults.remove(hung)
        await anyio.sleep(120)
        assert here.looks["worker1"] == 2
        assert (await here.published()).keys() == {"worker1"}


@pytest.mark.parametrize(("grace", "told"), [(30, ["job"]), (3600, [])])
async def test_a_job_copy_that_should_have_ended_is_published(grace: int, told: list[str]) -> None:
    """Of a job that was deleted on the manager nobody else tells, but who may read the worker. The cache knows no
    grace period: it is read with the copy."""
    async with scene("worker1") as here:
        there = DirectClient(here.fleet.workers["worker1"])
        spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": grace, "containers": CONTAINERS}
        metadata = {
            "name": "job",
            "namespace": "default",
            "labels": {ORIGIN_LABEL: "multikueue", PREBUILT_WORKLOAD: "gone"},
            "finalizers": ["example.com/slow"],
        }
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": {"spec": spec}}}
        await there.create(JOB, job)
        await anyio.sleep(1)
        await there.delete(JOB, ObjectKey("default", "job"), propagation="Background")
        await anyio.sleep(INTERVAL + EVERY)
        (published,) = (await here.published()).values()
    assert [copy.key.name for copy in published.facts.overdue or ()] == told
    assert all("example.com/slow" in copy.finalizers for copy in published.facts.overdue or ())


@pytest.mark.parametrize("ours", [True, False])
async def test_a_job_copy_that_is_not_deleted_though_its_workload_is_gone_is_published(ours: bool) -> None:
    """A webhook refuses its deletion, or the daemon may not delete its kind. One of another manager is none of ours."""
    async with scene("worker1") as here:
        there, marks = DirectClient(here.fleet.workers["worker1"]), Marks(here.manager.settings.plan.mark_key)
        here.fleet.workers["worker1"].faults.add(Refuse(403), on=Match(verbs=("delete",), user="multikueue"))
        mark = marks.of({"metadata": {"uid": "u"}}, "attempt", "worker1") if ours else "01234567." + 32 * "0"
        metadata = {
            "name": "job",
            "namespace": "default",
            "labels": {ORIGIN_LABEL: "multikueue", PREBUILT_WORKLOAD: "gone"},
            "annotations": {ATTEMPT_ANNOTATION: mark},
        }
        spec = {"restartPolicy": "Never", "containers": CONTAINERS}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": {"spec": spec}}}
        await there.create(JOB, job)
        await anyio.sleep(INTERVAL + EVERY)
        (published,) = (await here.published()).values()
    assert [(copy.key.name, copy.orphaned) for copy in published.facts.overdue or ()] == [("job", True)] * ours


async def test_what_changes_all_the_time_is_written_every_30_seconds_at_most() -> None:
    async with scene("worker1") as here:
        await anyio.sleep(EVERY)
        there, before = DirectClient(here.fleet.workers["worker1"]), here.writes()
        for number in range(300):
            usage = [{"name": "default-flavor", "resources": [{"name": "cpu", "total": str(number)}]}]
            status = {"status": {"flavorsUsage": usage}}
            await there.merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), status, subresource="status")
            await anyio.sleep(1)
        assert 5 <= here.writes() - before <= 300 / EVERY + 1


async def test_queues_of_one_worker_that_nobody_can_read_leave_those_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What its API server answered ended the task, again each minute: nothing was published of any worker."""
    listed = DirectClient.list

    async def odd(self: DirectClient, resource: Resource, **options: Any) -> ObjectList:
        objects = await listed(self, resource, **options)
        if resource == CLUSTER_QUEUE and self.registry is here.fleet.workers["worker1"].registry:
            return ObjectList(
                [{**obj, "status": {"conditions": [1]}} for obj in objects.items], objects.resource_version
            )
        return objects

    async with scene("worker1", "worker2") as here:
        monkeypatch.setattr(DirectClient, "list", odd)
        await anyio.sleep(EVERY)
        usage = {"flavorsUsage": [{"name": "default-flavor", "resources": [{"name": "cpu", "total": "7"}]}]}
        there = DirectClient(here.fleet.workers["worker2"])
        await there.merge_patch(
            CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), {"status": usage}, subresource="status"
        )
        await anyio.sleep(3 * EVERY)
        queues = (await here.published())["worker2"].facts.queues
    assert queues is not None
    assert queues.cluster[CLUSTER_QUEUE_NAME]["status"]["flavorsUsage"] == usage["flavorsUsage"]


async def test_queues_that_may_be_read_now_are_told_within_a_minute() -> None:
    """Not with the next look, or when the worker connects anew."""
    refusals: Refusals = {("list", "clusterqueues"): Forbidden("no"), ("list", "localqueues"): Forbidden("no")}
    there = Match(user="multikueue", resource="clusterqueues")
    async with scene("worker1", refusals=refusals) as here:
        faults = here.fleet.workers["worker1"].faults
        refused = faults.add(Refuse(403), on=there)
        await anyio.sleep(2 * SOON)
        worker1 = (await here.published())["worker1"]
        assert (worker1.facts.queues, [gap.what for gap in worker1.not_checked]) == (None, ["quotas of worker1"])
        faults.remove(refused)
        await anyio.sleep(SOON + EVERY + 5)
        worker1 = (await here.published())["worker1"]
        assert here.looks["worker1"] == 1
    assert worker1.facts.queues is not None
    assert worker1.not_checked == ()


async def test_nothing_is_written_while_nothing_changes_but_after_each_look() -> None:
    async with scene("worker1") as here:
        before = here.writes()
        await anyio.sleep(INTERVAL - 60)
        assert here.writes() == before
        await anyio.sleep(120)
        assert here.writes() == before + 1


async def test_a_worker_that_hangs_costs_its_deadline_and_keeps_what_was_seen() -> None:
    """It is looked at again after a minute; the others are told of meanwhile."""
    async with scene("worker1", "worker2") as here:
        at = (await here.published())["worker1"].at
        faults = here.fleet.workers["worker1"].faults
        hung = faults.add(Hang(), on=Match(resource="namespaces"))
        await anyio.sleep(INTERVAL + DEADLINE + EVERY)
        published = await here.published()
        assert published["worker1"].at == at
        assert published["worker2"].at != at
        faults.remove(hung)
        await anyio.sleep(SOON + EVERY)
        assert (await here.published())["worker1"].at != at
