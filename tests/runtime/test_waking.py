"""Whatever a decision reads wakes it, and nobody else: the table of `docs/architecture.md`, without any resync."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeAlias

import anyio
import anyio.lowlevel
import pytest

from multikueue.core.model.conditions import conditions, is_true
from multikueue.core.model.kinds import ADMISSION_CHECK, JOB, MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG, SECRET, WORKLOAD
from multikueue.core.model.labels import CORDON_ANNOTATION, MOVE_FROM_ANNOTATION, RETRY_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.workloads import owner
from multikueue.runtime.caches.workload_memory import WorkloadMemory
from multikueue.runtime.controller import KeyQueue
from multikueue.runtime.event_handlers import MARKS_BATCH, ManagerHandlers, WorkQueues
from multikueue.runtime.reconcilers import snapshot_reader
from multikueue.runtime.reconcilers import workload as reconciling
from multikueue.runtime.workers.kind_watch import SERVED_INTERVAL, UNUSED_AFTER
from multikueue.sandbox.apiserver import Delay, DirectClient, Match
from multikueue.sandbox.jobs import RunnerOptions
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE
from tests.core.door import DeleteWorkload, Plan, Snapshot, guarded_plan, those
from tests.runtime.fleet import CHECK, Fleet, until
from tests.runtime.test_recording import hold, lose

pytestmark = pytest.mark.looptime

RUNS, MOVES, WAITS = "runs", "moves", "waits"
"""The jobs: one runs on worker1, one shall leave it and has nowhere to go, one waits. worker2 is cordoned."""
WINDOW: Final = 90.0
"""Seconds within which a change must have woken those whom it concerns."""
Change: TypeAlias = Callable[[Fleet], Awaitable[object]]


def cluster(name: str, patch: Json) -> Change:
    return lambda fleet: fleet.admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", name), patch)


def annotated(**annotations: str | None) -> Json:
    return {"metadata": {"annotations": {key.replace("_", "-"): value for key, value in annotations.items()}}}


def deletion(resource: Resource, name: str, *, held: bool = False) -> Change:
    """Delete an object; `held`: a finalizer keeps it."""

    async def change(fleet: Fleet) -> None:
        if held:
            patch = {"metadata": {"finalizers": ["example.com/slow"]}}
            await fleet.admin.merge_patch(resource, ObjectKey("", name), patch)
        await fleet.admin.delete(resource, ObjectKey("", name))

    return change


async def _config(fleet: Fleet) -> ObjectKey:
    return ObjectKey.of((await fleet.admin.list(MULTIKUEUE_CONFIG)).items[0])


async def worker2_leaves_the_config(fleet: Fleet) -> None:
    await fleet.admin.merge_patch(MULTIKUEUE_CONFIG, await _config(fleet), {"spec": {"clusters": ["worker1"]}})


async def the_config_is_deleted(fleet: Fleet) -> None:
    await fleet.admin.delete(MULTIKUEUE_CONFIG, await _config(fleet))


async def the_check_is_made_again(fleet: Fleet, **spec: str) -> None:
    """As another check, in an instant: all that is seen of it is the new check."""
    admission_check = await fleet.admin.get(ADMISSION_CHECK, ObjectKey("", CHECK))
    await fleet.admin.delete(ADMISSION_CHECK, ObjectKey("", CHECK))
    await fleet.admin.create(
        ADMISSION_CHECK,
        {**admission_check, "metadata": {"name": CHECK}, "spec": {**admission_check["spec"], **spec}, "status": {}},
    )


async def the_check_is_somebody_elses(fleet: Fleet) -> None:
    await the_check_is_made_again(fleet, controllerName="example.com/other")


async def worker2_is_lost(fleet: Fleet) -> None:
    lose(fleet, "worker2")


async def worker2_serves_no_jobs(fleet: Fleet) -> None:
    """It has none, so they are not watched there."""
    types = fleet.workers["worker2"].registry.cluster.types
    del types["batch", "v1", "jobs"]
    await anyio.sleep(SERVED_INTERVAL)


async def worker2_has_no_kubeconfig(fleet: Fleet) -> None:
    await fleet.admin.delete(SECRET, ObjectKey(KUEUE_NAMESPACE, "worker2-secret"))


def of_job(job: str, resource: Resource, patch: Json, where: str = "") -> Change:
    """A change of a job, or of its Workload, on the manager or on a worker."""

    async def change(fleet: Fleet) -> None:
        client = DirectClient(fleet.workers[where]) if where else fleet.admin
        key = ObjectKey("default", job) if resource == JOB else (await _keys(fleet))[job]
        await client.merge_patch(resource, key, patch)

    return change


READS: Final[dict[str, tuple[Change, set[str]]]] = {
    "nothing": (lambda _: anyio.lowlevel.checkpoint(), set()),
    "Workload": (of_job(WAITS, WORKLOAD, annotated(x="1")), {WAITS}),
    "job": (of_job(WAITS, JOB, annotated(x="1")), {WAITS}),
    "job, asked again": (
        of_job(WAITS, JOB, {"metadata": {"annotations": {RETRY_ANNOTATION: "2026-01-01T00:00:00Z"}}}),
        {WAITS},
    ),
    "job that runs": (of_job(RUNS, JOB, annotated(x="1")), {RUNS}),
    "copy of the Workload": (of_job(WAITS, WORKLOAD, annotated(x="1"), "worker1"), {WAITS}),
    "copy of the job": (of_job(RUNS, JOB, annotated(x="1"), "worker1"), {RUNS}),
    "AdmissionCheck, deleted": (deletion(ADMISSION_CHECK, CHECK), {RUNS, MOVES, WAITS}),
    "AdmissionCheck, of another controller": (the_check_is_somebody_elses, {RUNS, MOVES, WAITS}),
    "MultiKueueConfig, deleted": (the_config_is_deleted, {RUNS, MOVES, WAITS}),
    "MultiKueueConfig, its clusters": (worker2_leaves_the_config, {RUNS, MOVES, WAITS}),
    "MultiKueueCluster, labels": (cluster("worker2", {"metadata": {"labels": {"team": "a"}}}), {MOVES, WAITS}),
    "MultiKueueCluster, annotations": (cluster("worker2", annotated(x="1")), {MOVES, WAITS}),
    "MultiKueueCluster, cordon": (
        cluster("worker2", {"metadata": {"annotations": {CORDON_ANNOTATION: None}}}),
        {MOVES, WAITS},
    ),
    "MultiKueueCluster, deleted": (deletion(MULTIKUEUE_CLUSTER, "worker2"), {MOVES, WAITS}),
    "MultiKueueCluster, going": (deletion(MULTIKUEUE_CLUSTER, "worker1", held=True), {RUNS, MOVES, WAITS}),
    "connection, lost": (worker2_is_lost, {MOVES, WAITS}),
    "connection, without a kubeconfig": (worker2_has_no_kubeconfig, {MOVES, WAITS}),
    "kind, not served": (worker2_serves_no_jobs, {MOVES, WAITS}),
}
"""By what a decision reads: a change of it, and the jobs that it concerns."""
TABLE: Final[dict[tuple[Resource, str], tuple[str, ...]]] = {
    (ADMISSION_CHECK, "all of one of ours"): (),
    (ADMISSION_CHECK, "whether it is ours, its config"): (
        "AdmissionCheck, deleted",
        "AdmissionCheck, of another controller",
    ),
    (MULTIKUEUE_CONFIG, "all"): (),
    (MULTIKUEUE_CONFIG, "its clusters, how one is chosen"): (
        "MultiKueueConfig, deleted",
        "MultiKueueConfig, its clusters",
    ),
    (MULTIKUEUE_CLUSTER, "how it is reached, whether it goes"): ("MultiKueueCluster, going",),
    (MULTIKUEUE_CLUSTER, "whether it is a second name"): (),
    (MULTIKUEUE_CLUSTER, "how namespaces and queues are called"): ("MultiKueueCluster, annotations",),
    (MULTIKUEUE_CLUSTER, "whether it is active"): (),
    (MULTIKUEUE_CLUSTER, "its labels and annotations, a cordon"): (
        "MultiKueueCluster, labels",
        "MultiKueueCluster, annotations",
        "MultiKueueCluster, cordon",
        "MultiKueueCluster, deleted",
    ),
    (SECRET, "all"): ("connection, without a kubeconfig",),
}
"""By row of `ManagerHandlers.table`: the changes above of what it reads. Without any it plans no Workload, and
`test_event_handlers` shows whom it wakes."""


async def _keys(fleet: Fleet) -> dict[str, ObjectKey]:
    """The Workloads, by the names of their jobs."""
    workloads = (await fleet.admin.list(WORKLOAD)).items
    return {
        owned_by.name: ObjectKey.of(workload) for workload in workloads if (owned_by := owner(workload)) is not None
    }


@asynccontextmanager
async def settled() -> AsyncIterator[Fleet]:
    """A fleet with the three jobs, whose manager resyncs nothing."""
    fleet = await Fleet.connected("worker1", "worker2")
    await cluster("worker2", {"metadata": {"annotations": {CORDON_ANNOTATION: "closed"}}})(fleet)
    async with fleet.kueues(), fleet.dispatching(fleet.build(gc_interval=timedelta(0))):
        for number, job in enumerate((RUNS, MOVES), 1):
            await fleet.submit(job)
            await until(partial(_running, fleet, number))
        await hold(fleet, "worker1", on=True)
        await fleet.submit(WAITS)
        await of_job(MOVES, WORKLOAD, annotated() | _move())(fleet)
        await anyio.sleep(120)
        yield fleet


def _move() -> Json:
    return {"metadata": {"annotations": {MOVE_FROM_ANNOTATION: "worker1"}}}


async def _running(fleet: Fleet, number: int) -> bool:
    jobs = (await DirectClient(fleet.workers["worker1"]).list(JOB)).items
    return sum(bool((job.get("status") or {}).get("active")) for job in jobs) == number


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[ObjectKey]:
    """The Workloads that were decided on, in order."""
    keys: list[ObjectKey] = []
    read = snapshot_reader.SnapshotReader.read

    def noted(reader: snapshot_reader.SnapshotReader, key: ObjectKey) -> Snapshot:
        keys.append(key)
        return read(reader, key)

    monkeypatch.setattr(snapshot_reader.SnapshotReader, "read", noted)
    return keys


async def test_each_row_of_the_managers_table_is_tried() -> None:
    manager = Fleet.of().build()
    handlers = ManagerHandlers(
        manager.cluster, WorkQueues(KeyQueue()), WorkloadMemory(), lambda: None, lambda _: None, lambda: None
    )
    rows = [(informer.resource, row.what) for informer, rows in handlers.table.items() for row in rows]
    assert rows == list(TABLE)
    assert READS.keys() >= {change for changes in TABLE.values() for change in changes}


@pytest.mark.parametrize("what", READS)
async def test_a_change_of_what_a_decision_reads_wakes_it(what: str, planned: list[ObjectKey]) -> None:
    """A refused move was looked at again after up to two hours, a dispatcher that reads labels waited for ever."""
    change, concerned = READS[what]
    async with settled() as fleet:
        names = {key: job for job, key in (await _keys(fleet)).items()}
        assert set(names.values()) == {RUNS, MOVES, WAITS}
        planned.clear()
        await change(fleet)
        await anyio.sleep(WINDOW)
        assert {names[key] for key in planned} == concerned


async def test_labels_that_change_each_second_plan_none_that_runs_and_the_others_once_in_a_batch(
    planned: list[ObjectKey],
) -> None:
    """A controller may write them for ever; one label must not plan 50,000."""
    async with settled() as fleet:
        names = {key: job for job, key in (await _keys(fleet)).items()}
        planned.clear()
        for number in range(40):
            await cluster("worker2", {"metadata": {"labels": {"load": str(number)}}})(fleet)
            await anyio.sleep(0.25)
        await anyio.sleep(WINDOW)
        counted = Counter(names[key] for key in planned)
        assert set(counted) == {MOVES, WAITS}
        assert max(counted.values()) <= 40 * 0.25 / MARKS_BATCH + 1


async def test_a_nominated_worker_has_the_kind_watched_though_nothing_is_sent_there() -> None:
    """Its jobs were not watched, as there are none; who was nominated may have one from an earlier process."""

    def watches(fleet: Fleet) -> int:
        asked = fleet.workers["worker2"].access.requests
        return sum(count for (_, verb, resource), count in asked.items() if (verb, resource) == ("watch", str(JOB)))

    async with settled() as fleet:
        await anyio.sleep(UNUSED_AFTER + 60)
        before = watches(fleet)
        key = (await _keys(fleet))[WAITS]
        nominated = {"status": {"nominatedClusterNames": ["worker1", "worker2"]}}
        await fleet.admin.merge_patch(WORKLOAD, key, nominated, subresource="status")
        await anyio.sleep(30)
        assert not (await DirectClient(fleet.workers["worker2"]).list(WORKLOAD)).items, "it is cordoned"
        assert watches(fleet) == before + 1


@pytest.mark.parametrize("answer", [0.0, 0.05])
async def test_of_a_finished_workload_the_end_of_its_copies_wakes_nobody(
    answer: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether their events come while they are being removed, or after that: a decision would have nothing to do."""
    finished: list[Plan] = []

    def noted(*arguments: Any) -> Plan:
        decided = guarded_plan(*arguments)
        finished.extend([decided] if decided.row.startswith("finished") else [])
        return decided

    monkeypatch.setattr(reconciling, "guarded_plan", noted)
    fleet = await Fleet.connected("worker1", "worker2")
    for server in fleet.workers.values():
        server.faults.add(Delay(answer), on=Match(user="multikueue"))
    async with fleet.kueues(RunnerOptions(minimum=5.0, maximum=5.0)), fleet.running(fleet.build()):
        await fleet.submit(RUNS)
        await anyio.sleep(60)
        for server in fleet.workers.values():
            assert not (await DirectClient(server).list(WORKLOAD)).items
    assert finished
    assert all(those(DeleteWorkload, decided.effects) for decided in finished)


async def test_a_settled_end_is_shown_once_the_last_copy_of_a_finished_workload_has_gone() -> None:
    """Somebody's finalizer holds the copy: nothing but its end tells that the manager's job may show its own."""
    end = {"status": "True", "reason": "DeadlineExceeded", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}

    async def says(fleet: Fleet, resource: Resource, key: ObjectKey, word: str) -> None:
        listed = [*conditions(await fleet.admin.get(resource, key)), {"type": word, **end}]
        await fleet.admin.merge_patch(resource, key, {"status": {"conditions": listed}}, subresource="status")

    async with settled() as fleet:
        job, worker = ObjectKey("default", RUNS), DirectClient(fleet.workers["worker1"])
        await worker.merge_patch(JOB, job, {"metadata": {"finalizers": ["example.com/slow"]}})
        await says(fleet, WORKLOAD, (await _keys(fleet))[RUNS], "Finished")
        await says(fleet, JOB, job, "FailureTarget")
        await anyio.sleep(WINDOW)
        assert not is_true(await fleet.admin.get(JOB, job), "Failed"), "it may run there"
        await worker.merge_patch(JOB, job, {"metadata": {"finalizers": None}})
        await anyio.sleep(WINDOW)
        assert is_true(await fleet.admin.get(JOB, job), "Failed")
