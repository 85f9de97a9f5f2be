"""MultiKueueClusters: which kubeconfigs are taken, and what is told about workers that cannot be reached."""

from __future__ import annotations

import functools
import gc
import threading
import weakref
from itertools import pairwise

import anyio
import pytest
from structlog.testing import capture_logs

from multikueue.adapters import BUILTIN
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, SECRET
from multikueue.core.model.names import ObjectKey
from multikueue.kube import ClusterConfig, parse_worker_kubeconfig
from multikueue.runtime.cluster_pool import LINGER
from multikueue.runtime.reconcilers import configuration
from multikueue.runtime.workers.informers import WorkerInformers
from multikueue.runtime.workers.pool import WorkerCluster
from multikueue.sandbox.apiserver import DirectClient, Fault, Match, Refuse
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE
from tests.runtime.fleet import Fleet, is_active, kubeconfig, until

pytestmark = pytest.mark.looptime

WORKER = ObjectKey("", "worker1")
SECRET_KEY = ObjectKey(KUEUE_NAMESPACE, "worker1-secret")


async def state_of(fleet: Fleet, name: str = "worker1") -> tuple[str, str, str]:
    """Status, reason and message of a MultiKueueCluster, once there are any."""
    await until(lambda: fleet.active(name))
    active = await fleet.active(name)
    return active["status"], active["reason"], active["message"]


async def test_a_worker_that_answers_is_active_and_an_event_says_so() -> None:
    fleet = await Fleet.connected("worker1")
    async with fleet.running():
        assert await state_of(fleet) == ("True", "Active", "Connected")
        await anyio.sleep(1)
        assert await fleet.events() == [("Normal", "ClusterConnected", "Connected")]
        assert (await fleet.active())["observedGeneration"] == 1


async def test_an_insecure_kubeconfig_is_refused_in_kueues_words() -> None:
    fleet = await Fleet.connected("worker1")
    await fleet.write_secret("worker1", kubeconfig("worker1", server="http://worker1:6443"))
    message = "load client config failed: server URL must start with https://"
    async with fleet.running():
        assert await state_of(fleet) == ("False", "InsecureKubeConfig", message)
        await anyio.sleep(600)
        assert await fleet.events() == [("Warning", "InsecureKubeConfig", message)]
    assert fleet.workers["worker1"].access.requests["multikueue", "list", "workloads.kueue.x-k8s.io"] == 0


async def test_a_worker_served_by_a_bug_takes_no_other_along_and_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A cluster is a unit of failure: an unexpected exception is logged, told, and tried again after a minute."""
    fleet = await Fleet.connected("worker1", "worker2")
    run, broken = WorkerInformers.run, {"worker1"}

    async def fails(informers: WorkerInformers) -> None:
        assert isinstance(informers.client, DirectClient)
        if informers.client.registry.name in broken:
            raise ZeroDivisionError
        await run(informers)

    monkeypatch.setattr(WorkerInformers, "run", fails)
    with capture_logs() as logged:
        async with fleet.running():
            status, reason, message = await state_of(fleet)
            assert (status, reason) == ("False", "ClientConnectionFailed")
            assert message.startswith("internal error: see the log of multikueue; connection attempts: 1, next")
            await until(is_active(fleet, "worker2"))
            broken.clear()
            assert 50 < await until(is_active(fleet), within=90) < 70
    assert [entry["cluster"] for entry in logged if entry["event"] == "unexpected exception"] == ["worker1"]


async def test_a_path_that_may_not_be_read_is_refused() -> None:
    fleet = await Fleet.connected("worker1")
    reference = {"location": "x", "locationType": "Path"}
    await fleet.admin.merge_patch(MULTIKUEUE_CLUSTER, WORKER, {"spec": {"clusterSource": {"kubeConfig": reference}}})
    problem = "kubeconfig path is not under the allowed prefix: path must be absolute"
    async with fleet.running():
        assert await state_of(fleet) == ("False", "BadKubeConfig", f"load client config failed: {problem}")


def has_hit(fault: Fault, times: int) -> bool:
    return fault.hits >= times


async def test_a_dead_worker_is_asked_ever_more_rarely_and_its_status_says_when() -> None:
    """5, 10, 20, 40 and then 60 s; changes of the object in between make no attempt."""
    fleet = await Fleet.connected("worker1")
    fault = fleet.workers["worker1"].faults.add(Refuse(500), on=Match(resource="workloads"))
    async with fleet.running():
        attempts = []
        for number in range(1, 8):
            await until(functools.partial(has_hit, fault, number), within=70)
            attempts.append(anyio.current_time())
            await fleet.admin.merge_patch(MULTIKUEUE_CLUSTER, WORKER, {"metadata": {"labels": {"n": str(number)}}})
        assert [round(later - earlier) for earlier, later in pairwise(attempts)] == [5, 10, 20, 40, 60, 60]
        await anyio.sleep(1)
        assert (await state_of(fleet))[2].endswith(
            "; connection attempts: 7, next connection attempt: 2026-01-01T00:04:15Z"
        )
        assert len(await fleet.events()) == 1


async def test_what_is_read_from_workers_is_shown_in_one_line() -> None:
    fleet = await Fleet.connected("worker1", "worker2")
    fleet.workers["worker2"].faults.add(Refuse(500))
    async with fleet.running() as manager:
        await until(is_active(fleet))
        await until(is_active(fleet, "worker2", "False"))
        assert repr(manager.workers) == "<WorkerPool of <ClusterPool 2 clusters: 1 connected, 1 lost>>"
        worker = manager.workers.get("worker1")
        assert worker is not None
        kinds = len(BUILTIN) + 1
        assert repr(worker.known) == f"<WorkerInformers {kinds} of {kinds} kinds followed>"
        shown = worker.known.shown if worker.known is not None else ()
        fleet.workers["worker1"].faults.add(Refuse(500), on=Match(resource="jobs"))
        fleet.workers["worker1"].faults.connections.drop()
        await until(lambda: repr(worker.known) == f"<WorkerInformers {kinds - 1} of {kinds} kinds followed>")
        assert worker.known is not None
        assert worker.known.shown != shown, "whoever decides is told of a watch that broke"


async def test_a_worker_that_was_never_reached_holds_up_no_job_and_templates_of_copies_are_not_kept() -> None:
    fleet = await Fleet.connected("worker1", "worker2")
    fleet.workers["worker2"].faults.add(Refuse(500), on=Match(user="multikueue"))
    async with fleet.kueues(), fleet.running() as manager:
        await until(is_active(fleet))
        await fleet.submit()

        async def runs() -> bool:
            return list(await fleet.running_on()) == ["worker1"]

        await until(runs)
        worker = manager.workers.get("worker1")
        assert worker is not None
        assert worker.known is not None
        (copy,) = worker.known.workloads.informer.values()
        assert [set(pod_set) & {"template", "count"} for pod_set in copy["spec"]["podSets"]] == [{"count"}]


async def test_a_worker_without_a_kubeconfig_holds_up_no_job() -> None:
    fleet = await Fleet.connected("worker1", "worker2")
    await fleet.admin.delete(SECRET, ObjectKey(KUEUE_NAMESPACE, "worker2-secret"))
    async with fleet.kueues(), fleet.running():
        await until(is_active(fleet))
        await fleet.submit()
        assert await until(fleet.running_on) < 10


async def test_an_attempt_that_fails_as_the_one_before_wakes_no_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    """It changes the time of the next one, which is shown on the MultiKueueCluster, and nothing else."""
    fleet = await Fleet.connected("worker1")
    fault = fleet.workers["worker1"].faults.add(Refuse(500), on=Match(resource="workloads"))
    manager, states = fleet.build(), list[tuple[bool, bool]]()

    def note(worker: WorkerCluster, known: bool) -> None:
        states.append((worker.connection.connected, known))

    monkeypatch.setattr(manager.workers, "on_cluster", note)
    async with fleet.running(manager):
        await until(functools.partial(has_hit, fault, 4), within=200)
        states.clear()
        await until(functools.partial(has_hit, fault, 7), within=300)
        assert states == []
        fleet.workers["worker1"].faults.clear()
        await until(lambda: manager.workers.clusters.connected("worker1"), within=70)
        assert states[-1] == (True, True)
        await fleet.admin.delete(MULTIKUEUE_CLUSTER, WORKER)
        await anyio.sleep(1)
        assert states[-1] == (False, False)


async def test_the_informers_of_a_removed_worker_are_not_kept() -> None:
    """They hold all it has shown; clusters come and go for as long as the process lives."""
    fleet = await Fleet.connected("worker1")
    async with fleet.dispatching() as manager:
        worker = manager.workers.get("worker1")
        assert worker is not None
        kept = weakref.ref(worker.known)
        del worker
        await fleet.admin.delete(MULTIKUEUE_CLUSTER, WORKER)
        await anyio.sleep(LINGER + 1)
        gc.collect()
        assert kept() is None


@pytest.mark.parametrize(("padding", "beside"), [(0, False), (20_000, True)])
async def test_a_large_kubeconfig_is_parsed_beside_the_loop(
    monkeypatch: pytest.MonkeyPatch, padding: int, beside: bool
) -> None:
    """It takes seconds; a usual one takes milliseconds."""
    threads: list[int] = []

    def parse(data: bytes) -> ClusterConfig:
        threads.append(threading.get_ident())
        return parse_worker_kubeconfig(data)

    monkeypatch.setattr(configuration, "parse_worker_kubeconfig", parse)
    fleet = await Fleet.connected("worker1")
    document = kubeconfig("worker1") | {"preferences": {"padding": "x" * padding}}
    await fleet.write_secret("worker1", document)
    async with fleet.dispatching():
        assert [thread != threading.get_ident() for thread in threads] == [beside]
