"""What a change on a cluster does: which keys it enqueues, and what else."""

from __future__ import annotations

from datetime import timedelta

import anyio
import attrs
import pytest

from multikueue.adapters import BUILTIN, AdapterRegistry
from multikueue.core.config.profile_secrets import PROFILE_LABEL
from multikueue.core.model.conditions import new_condition
from multikueue.core.model.kinds import JOB
from multikueue.core.model.labels import (
    COMPONENT_INDEX_ANNOTATION,
    CORDON_ANNOTATION,
    ELASTIC_ANNOTATION,
    PROFILE_ANNOTATION,
)
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.workloads import OUT_OF_SYNC, SLICE_REPLACED
from multikueue.kube.informers.informer import Informer
from multikueue.runtime.caches.manager_cluster import ManagerCluster
from multikueue.runtime.caches.workload_memory import WorkloadMemory
from multikueue.runtime.controller import KeyQueue
from multikueue.runtime.event_handlers import MARKS_BATCH, MARKS_RATE, ManagerHandlers, WorkQueues, wake, workload_queue
from multikueue.runtime.manager import Manager
from multikueue.sandbox.apiserver import Match, Reset
from tests.core.door import Unanswered
from tests.runtime.fleet import Fleet, now, until

pytestmark = pytest.mark.looptime

KEY, WORKER = ObjectKey("default", "wl"), ClusterName("worker1")


def doubted_for(manager: Manager) -> timedelta:
    """How long a creation on the worker has had no answer, as decisions see it."""
    creation = manager._from_workers.memory.creation(WORKER, KEY, "this attempt")
    assert isinstance(creation, Unanswered)
    return creation.ago


async def test_doubts_about_a_creation_are_renewed_when_the_worker_is_back_and_only_then() -> None:
    """What a worker shows first may be older than the job; a connection that holds is no news."""
    fleet = await Fleet.connected("worker1")
    async with fleet.dispatching() as manager:
        memory = manager._from_workers.memory
        memory.sending(WORKER, KEY, ObjectKey("default", "train"))
        memory.unanswered(WORKER, KEY, ObjectKey("default", "train"))
        worker = manager.workers.get(WORKER)
        assert worker is not None
        await anyio.sleep(10)
        manager._from_workers.cluster_changed(worker, True)
        assert doubted_for(manager) == timedelta(seconds=10)

        lost = fleet.workers["worker1"].faults.add(Reset(), on=Match(user="multikueue"))
        fleet.workers["worker1"].faults.connections.drop()
        await until(lambda: not worker.connection.connected, within=300)
        await anyio.sleep(60)
        fleet.workers["worker1"].faults.remove(lost)
        await until(lambda: worker.connection.connected, within=120)
        assert doubted_for(manager) < timedelta(seconds=2)


def taken(queue: KeyQueue[ObjectKey]) -> list[str]:
    """The names of the keys that are due."""
    keys = []
    while (key := queue.take()) is not None:
        queue.release(key)
        keys.append(key.name)
    return keys


@attrs.define(eq=False)
class Wired:
    """The handlers of a manager whose caches hold one check, its config and a worker that the config lists."""

    cluster: ManagerCluster
    work: WorkQueues = attrs.field(
        default=attrs.Factory(
            lambda self: WorkQueues(workload_queue(self.cluster, WorkloadMemory(), 32)), takes_self=True
        )
    )
    recomputed: int = 0
    asked_again: list[ObjectKey] = attrs.field(factory=list)
    handlers: ManagerHandlers = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.handlers = ManagerHandlers(
            self.cluster, self.work, WorkloadMemory(), self._recompute, self.asked_again.append, lambda: None
        )
        for informer, obj in ((self.cluster.checks, OURS), (self.cluster.configs, CONFIG)):
            informer.put(ObjectKey.of(obj), obj)
        self.cluster.clusters.put(ObjectKey.of(LISTED), LISTED)
        for name in ("waits", "other"):
            self.cluster.workloads.informer.put(ObjectKey("default", name), workload(name))

    @classmethod
    def of_nobody(cls) -> Wired:
        return cls(Fleet.of().build().cluster)

    def change(self, informer: Informer, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        """An object of one of the manager's resources changed."""
        wake(self.handlers.table[informer], key, old, new)

    def _recompute(self) -> None:
        self.recomputed += 1

    def due(self) -> dict[str, list[str]]:
        """What is to be looked at now, by kind, and how often sums are to be."""
        queues = {"workloads": self.work.workloads, "clusters": self.work.clusters, "checks": self.work.checks}
        return {name: keys for name, queue in queues.items() if (keys := taken(queue))}


def workload(name: str) -> Json:
    """A Workload that waits: `waits` has our check, another has not."""
    check = "ours" if name == "waits" else "theirs"
    checks = [{"name": check, "state": "Pending", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"active": True},
        "status": {
            "admissionChecks": checks,
            "conditions": [new_condition("QuotaReserved", True, "QuotaReserved", "", now=now())],
        },
    }


OURS: Json = {
    "metadata": {"name": "ours", "uid": "1"},
    "spec": {
        "controllerName": "kueue.x-k8s.io/multikueue",
        "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "config"},
    },
}
THEIRS: Json = {"metadata": {"name": "ours", "uid": "1"}, "spec": {"controllerName": "somebody", "parameters": {}}}
CONFIG: Json = {"metadata": {"name": "config", "uid": "2"}, "spec": {"clusters": ["worker1"]}}
LISTED: Json = {
    "metadata": {"name": "worker1", "uid": "3"},
    "spec": {"clusterSource": {"kubeConfig": {"location": "worker1-secret", "locationType": "Secret"}}},
    "status": {"conditions": [{"type": "Active", "status": "True", "reason": "Active", "message": "Connected"}]},
}
BY_PROFILE: Json = {**LISTED, "spec": {"clusterSource": {"clusterProfileRef": {"name": "worker1"}}}}


def changed(obj: Json, **parts: Json) -> Json:
    """An object with other parts: of those that are objects, other fields."""
    return {**obj, **{name: {**obj.get(name, {}), **part} for name, part in parts.items()}}


ELSEWHERE = changed(OURS, spec={"parameters": {**OURS["spec"]["parameters"], "name": "another"}})
LOST = changed(
    LISTED,
    status={"conditions": [{"type": "Active", "status": "False", "reason": "ClientConnectionFailed", "message": "x"}]},
)


@pytest.mark.parametrize(
    ("old", "new", "due", "recomputed"),
    [
        (None, OURS, {"workloads": ["waits"], "checks": ["ours"]}, 1),
        (OURS, None, {"workloads": ["waits"], "checks": ["ours"]}, 1),
        (OURS, ELSEWHERE, {"workloads": ["waits"], "checks": ["ours"]}, 1),
        (OURS, THEIRS, {"workloads": ["waits"], "checks": ["ours"]}, 1),
        (THEIRS, OURS, {"workloads": ["waits"], "checks": ["ours"]}, 1),
        (OURS, changed(OURS, metadata={"labels": {"a": "b"}}), {"checks": ["ours"]}, 1),
        (THEIRS, changed(THEIRS, metadata={"labels": {"a": "b"}}), {}, 0),
        (None, THEIRS, {"workloads": ["waits"]}, 0),
    ],
)
async def test_a_check_wakes_what_has_it_if_its_meaning_has_changed(
    old: Json | None, new: Json | None, due: dict[str, list[str]], recomputed: int
) -> None:
    wired = Wired.of_nobody()
    wired.change(wired.cluster.checks, ObjectKey("", "ours"), old, new)
    assert (wired.due(), wired.recomputed) == (due, recomputed)


@pytest.mark.parametrize(
    ("old", "new", "due"),
    [
        (None, CONFIG, {"workloads": ["waits"], "checks": ["ours"]}),
        (CONFIG, None, {"workloads": ["waits"], "checks": ["ours"]}),
        (CONFIG, changed(CONFIG, spec={"clusters": ["worker2"]}), {"workloads": ["waits"], "checks": ["ours"]}),
        (
            CONFIG,
            changed(CONFIG, metadata={"annotations": {PROFILE_ANNOTATION: "p"}}),
            {"workloads": ["waits"], "checks": ["ours"]},
        ),
        (CONFIG, changed(CONFIG, metadata={"labels": {"a": "b"}}), {}),
    ],
)
async def test_a_config_wakes_its_checks_and_their_workloads_if_its_meaning_has_changed(
    old: Json | None, new: Json | None, due: dict[str, list[str]]
) -> None:
    """What it says of quotas may have changed each time."""
    wired = Wired.of_nobody()
    wired.change(wired.cluster.configs, ObjectKey("", "config"), old, new)
    assert (wired.due(), wired.recomputed) == (due, 1)


@pytest.mark.parametrize(
    ("old", "new", "due"),
    [
        (None, LISTED, {"clusters": ["worker1"], "checks": ["ours"]}),
        (LISTED, None, {"clusters": ["worker1"], "checks": ["ours"], "workloads": ["waits"]}),
        (LISTED, LOST, {"checks": ["ours"]}),
        (LISTED, BY_PROFILE, {"clusters": ["worker1"]}),
        (LISTED, changed(LISTED, metadata={"uid": "4"}), {"clusters": ["worker1"]}),
        (LISTED, changed(LISTED, metadata={"annotations": {CORDON_ANNOTATION: "x"}}), {"workloads": ["waits"]}),
        (changed(LISTED, metadata={"annotations": {CORDON_ANNOTATION: "x"}}), LISTED, {"workloads": ["waits"]}),
        (LISTED, changed(LISTED, metadata={"annotations": {"another": "x"}}), {}),
        (LISTED, changed(LISTED, status={"observed": 1}), {}),
    ],
)
async def test_a_worker_wakes_what_reads_of_it_what_has_changed(
    old: Json | None, new: Json | None, due: dict[str, list[str]]
) -> None:
    """Its spec the connection, its condition the checks, what closes it those that may get it; the rest waits."""
    wired = Wired.of_nobody()
    wired.change(wired.cluster.clusters, ObjectKey("", "worker1"), old, new)
    assert wired.due() == due


async def test_marks_of_a_worker_are_acted_on_after_a_pause() -> None:
    wired = Wired.of_nobody()
    marked = changed(LISTED, metadata={"annotations": {"another": "x"}})
    wired.change(wired.cluster.clusters, ObjectKey("", "worker1"), LISTED, marked)
    await anyio.sleep(MARKS_BATCH)
    assert wired.due() == {}
    await anyio.sleep(1 / MARKS_RATE + 1e-6)
    assert wired.due() == {"workloads": ["waits"]}


def part(index: int, worker: str = "") -> Json:
    """A part of a group, as of a LeaderWorkerSet."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j", "controller": True}
    made = workload(f"part-{index}")
    metadata = {"annotations": {COMPONENT_INDEX_ANNOTATION: str(index)}, "ownerReferences": [owner]}
    return changed(made, metadata=metadata, status={"clusterName": worker} if worker else {})


@pytest.mark.parametrize(
    ("old", "new", "due"),
    [
        (None, "", ["part-0", "part-1"]),
        ("", "worker1", ["part-0", "part-1", "part-2"]),
        ("", None, ["part-0", "part-1"]),
        ("", "", ["part-1"]),
    ],
)
async def test_a_part_of_a_group_wakes_those_that_go_by_it(old: str | None, new: str | None, due: list[str]) -> None:
    """It came, went, or has got a worker; all of these wait for it, or the first for the group to be complete."""
    wired = Wired.of_nobody()
    for workload in (part(0), part(2)):
        wired.cluster.workloads.informer.put(ObjectKey.of(workload), workload)
    before, after = (None if worker is None else part(1, worker) for worker in (old, new))
    wired.handlers._workload_changed(ObjectKey("default", "part-1"), before, after)
    assert sorted(taken(wired.work.workloads)) == due


async def test_a_change_on_a_worker_concerns_no_other_of_its_job_unless_that_has_replaced_it() -> None:
    """A group may have thousands."""
    cluster = Wired.of_nobody().cluster
    for workload in (part(0), part(1)):
        cluster.workloads.informer.put(ObjectKey.of(workload), workload)
    for key in (ObjectKey("default", "part-0"), ObjectKey("default", "gone")):
        assert list(cluster.with_successors(key)) == [key]


@pytest.mark.parametrize("reason", [SLICE_REPLACED, OUT_OF_SYNC])
async def test_a_change_of_a_slices_copy_wakes_the_others_once_it_is_over(reason: str) -> None:
    """They may wait for what runs beside it, however it has ended."""
    cluster = Wired.of_nobody().cluster
    over = changed(part(0), metadata={"annotations": {ELASTIC_ANNOTATION: "true"}})
    over["status"] = {"conditions": [{"type": "Finished", "status": "True", "reason": reason}]}
    for workload in (over, part(1)):
        cluster.workloads.informer.put(ObjectKey.of(workload), workload)
    assert [key.name for key in cluster.with_successors(ObjectKey.of(over))] == ["part-0", "part-1"]


@pytest.mark.parametrize("worker", ["", "worker1"])
@pytest.mark.parametrize("part", ["status", "spec"])
async def test_a_job_wakes_its_workload_at_once_unless_it_runs_and_its_status_alone_has_changed(
    worker: str, part: str
) -> None:
    """That is what we have copied from the worker ourselves, mostly."""
    wired = Wired.of_nobody()
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j", "controller": True}
    status = {"clusterName": worker} if worker else {}
    placed = changed(workload("waits"), metadata={"ownerReferences": [owner]}, status=status)
    wired.cluster.workloads.informer.put(ObjectKey.of(placed), placed)
    kind = AdapterRegistry(BUILTIN).get(JOB.gvk)
    assert kind is not None
    job: Json = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "namespace": "default"}}
    wired.handlers._job_changed(kind, ObjectKey("default", "train"), {**job, part: {"a": 1}}, {**job, part: {"a": 2}})
    assert bool(taken(wired.work.workloads)) is not (worker != "" and part == "status")


PLAIN: Json = {"metadata": {"name": "worker1-secret", "namespace": "kueue-system"}}
OF_A_PROFILE: Json = {**PLAIN, "metadata": {**PLAIN["metadata"], "name": "s", "labels": {PROFILE_LABEL: "worker1"}}}


@pytest.mark.parametrize(
    ("worker", "name", "old", "new", "enqueued"),
    [
        (LISTED, "worker1-secret", None, PLAIN, ["worker1"]),
        (LISTED, "worker1-secret", PLAIN, None, ["worker1"]),
        (LISTED, "another", None, PLAIN, []),
        (LISTED, "s", None, OF_A_PROFILE, []),
        (BY_PROFILE, "another", None, PLAIN, []),
        (BY_PROFILE, "s", None, OF_A_PROFILE, ["worker1"]),
        (BY_PROFILE, "s", OF_A_PROFILE, PLAIN, ["worker1"]),
    ],
)
async def test_a_secret_has_those_workers_connected_anew_that_may_use_it(
    worker: Json, name: str, old: Json | None, new: Json | None, enqueued: list[str]
) -> None:
    wired = Wired.of_nobody()
    wired.cluster.clusters.put(ObjectKey("", "worker1"), worker)
    wired.change(wired.cluster.secrets, ObjectKey("kueue-system", name), old, new)
    assert taken(wired.work.clusters) == enqueued
