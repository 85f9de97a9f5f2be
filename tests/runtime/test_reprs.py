"""`repr` of the runtime's parts says their state in one line, for logs and debuggers: never the objects they hold."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import anyio
import attrs
import pytest

from multikueue import PlanSettings
from multikueue.core.machinery.action import Action
from multikueue.core.machinery.cluster_state import Assigned, Link
from multikueue.core.model.kinds import EVENT, JOB
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.errors import ServerFault
from multikueue.kube import Informer
from multikueue.protocols import Reconciler
from multikueue.runtime.caches.mutation_cache import MutationCache
from multikueue.runtime.controller import Controller, KeyQueue
from multikueue.runtime.effect_executor import EffectExecutor
from multikueue.runtime.events import EventRecorder
from multikueue.runtime.inventory.caches import HubCaches
from multikueue.runtime.inventory.reconcilers import InventoryReconciler, PlacementReconciler
from multikueue.runtime.inventory.spoke_reader import SpokeReader
from multikueue.runtime.origin import Origin
from multikueue.runtime.reconcilers.configuration import AdmissionCheckReconciler, ClusterReconciler
from multikueue.runtime.workers.executor import WorkerBackoffs, WorkerExecutor
from multikueue.runtime.workers.kubeconfig_files import KubeconfigFiles
from multikueue.testing import InMemoryCluster, job, running, until
from multikueue.testing.waiting import background
from tests.core.door import CreateWorkload, Effect
from tests.runtime.fleet import Fleet
from tests.runtime.stage import Stage

pytestmark = pytest.mark.looptime

W1, KEY = ClusterName("worker1"), ObjectKey("default", "wl")


class Slow(Reconciler[str]):
    async def reconcile(self, key: str) -> Action:
        await anyio.sleep(10)
        return Action.after(60)


@pytest.mark.parametrize(
    ("part", "field"),
    [
        (PlanSettings, "mark_key"),
        (Link, "config"),
        (Assigned, "config"),
        (Origin, "client"),
        (AdmissionCheckReconciler, "_logged"),
        (ClusterReconciler, "_parsed"),
        (ClusterReconciler, "_draining"),
        (PlacementReconciler, "_memory"),
        (PlacementReconciler, "_filled"),
        (InventoryReconciler, "_memory"),
        (SpokeReader, "_tokens"),
        (HubCaches, "_read"),
        (HubCaches, "_latest"),
    ],
)
def test_secrets_and_what_is_kept_of_many_objects_is_in_no_repr(part: Any, field: str) -> None:
    """Credentials, the key of our marks, and what grows with the fleet."""
    assert attrs.fields_dict(part)[field].repr is False


async def test_a_controller_and_its_queue() -> None:
    queue: KeyQueue[str] = KeyQueue()
    controller = Controller("test", Slow(), queue=queue)
    for key in ("a", "b", "c"):
        queue.enqueue(key)
    assert repr(queue) == "<KeyQueue: 3 waiting, 0 held>"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(controller.run)
        await anyio.sleep(1)
        assert repr(queue) == "<KeyQueue: 2 waiting, 1 held>"
        assert repr(controller) == "<Controller test: 2 keys waiting, 1 in work>"
        controller.drain()
        assert repr(controller) == "<Controller test: 2 keys waiting, 1 in work, draining>"


async def test_a_manager_and_its_cluster() -> None:
    fleet = Fleet.of("worker1", "worker2")
    manager = fleet.build()
    assert repr(manager) == "<Manager 0 workloads, 0 workers; 0 keys waiting>"
    assert repr(manager.cluster).startswith(
        "<ManagerCluster 0 workloads, 0 workers; not synced: workloads.kueue.x-k8s.io,"
    )
    await fleet.connect()
    async with fleet.kueues(), fleet.running(manager):
        await until(lambda: "2 workers: 2 connected" in repr(manager))
        fleet.workers["worker2"].faults.connections.drop()
        await fleet.submit()
        await until(lambda: repr(manager).startswith("<Manager 1 workloads, 2 workers: "))
        assert repr(manager.cluster) == "<ManagerCluster 1 workloads, 2 workers>"
        assert "\n" not in repr(manager)


async def test_a_mutation_cache() -> None:
    cluster = InMemoryCluster()
    cache = MutationCache(Informer(cluster.client(), JOB))
    (train,) = await cluster.put(job())
    cache.wrote(train)
    assert repr(cache) == "<MutationCache jobs.batch: 0 objects, 1 writes and 0 deletions remembered>"


class Failing(EffectExecutor):
    def target(self, _cluster: ClusterName) -> None:
        return None

    def __init__(self) -> None: ...

    async def execute(self, workload: Json | None, effects: tuple[Effect, ...], *, again: bool = False) -> None:
        await anyio.sleep(1)
        raise ServerFault("broken", status=500)


async def test_an_executor() -> None:
    executor = WorkerExecutor(Failing(), lambda _cluster, _key, _after: True, WorkerBackoffs())
    async with background() as tasks:
        await tasks.start(executor.run)
        await executor.execute(KEY, None, (CreateWorkload(W1, {}),))
        assert repr(executor) == "<WorkerExecutor: 1 parts under way, 0 failed>"
        await executor.wait_idle()
        assert repr(executor) == "<WorkerExecutor: 0 parts under way, 1 failed>"


async def test_an_event_recorder() -> None:
    cluster = InMemoryCluster()
    recorder = EventRecorder(cluster.client(), "kueue", "pod-1", lambda: datetime(2026, 1, 1, tzinfo=UTC))
    recorder.emit(job(), "Normal", "MultiKueue", "MultiKueue", "hello")
    assert repr(recorder) == "<EventRecorder kueue: 1 waiting, 0 sent, 0 dropped>"
    async with running(recorder.run):
        await cluster.when(EVENT, lambda event: bool(event["note"] == "hello"))
    assert repr(recorder) == "<EventRecorder kueue: 0 waiting, 1 sent, 0 dropped>"


async def test_kubeconfig_files() -> None:
    files = KubeconfigFiles(lambda: (), lambda _path: None, "/etc/kubeconfigs")
    assert repr(files) == "<KubeconfigFiles below /etc/kubeconfigs: 0 read, 0 being read>"


async def test_an_elector() -> None:
    stage = Stage()
    elector, _ = stage.elector("a")
    assert repr(elector) == "<Elector a for kueue-system/multikueue: led by nobody>"
    async with background() as tasks:
        tasks.start_soon(elector.run, lambda: stage.lead("a"))
        await stage.until("a")
        assert repr(elector) == "<Elector a for kueue-system/multikueue: leading>"
