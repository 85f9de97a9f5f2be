"""Jobs that other jobs make on a worker, with our label on them; and copies that something there has adopted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from multikueue.adapters import AVAILABLE, AdapterRegistry, JobKind
from multikueue.core.model.kinds import EVENT, WORKLOAD
from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.names import ClusterName, Json, ObjectKey, Resource
from multikueue.errors import NotFound, Unreachable
from multikueue.kube import ClusterConfig, Informer
from multikueue.protocols import ApiClient, ObjectList
from multikueue.runtime.caches.mutation_cache import MutationCache
from multikueue.runtime.manager import Manager, ManagerSettings
from multikueue.runtime.workers.children import is_child
from multikueue.runtime.workers.kind_watch import LATE_LOOK, LOOK_INTERVAL, UNUSED_AFTER
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.setting_up import LOCAL_QUEUE_NAME
from multikueue.testing import running
from tests.examples import shared
from tests.kube.fake_server import FakeServer, Refused, Step, listed, wait
from tests.runtime.fleet import Fleet, is_active, now, until
from tests.runtime.odd_objects import OddClient, OddObjects
from tests.runtime.test_pods import GROUP, Bench, definition

pytestmark = pytest.mark.looptime

ROWS = {kind.resource.gvk.kind: kind for kind in AVAILABLE}
RAY_JOB, RAY_CLUSTER, POD = (ROWS[name] for name in ("RayJob", "RayCluster", "Pod"))
OURS = "kueue.x-k8s.io/multikueue"


async def bench_of(*rows: JobKind, spoilt: str = "") -> tuple[Bench, Manager]:
    """A worker and a manager of these kinds; `spoilt` is the name of a RayCluster there that cannot be decoded."""
    bench = Bench(Fleet.of("worker1"))
    for server in (bench.fleet.manager, *bench.fleet.workers.values()):
        for row in rows:
            if row.resource.gvk.group == "ray.io":
                server.registry.create_object(definition(row.resource))
    await bench.fleet.connect()
    odd = OddObjects(bench.fleet.workers["worker1"], {(RAY_CLUSTER.resource.gvk.kind, spoilt): None} if spoilt else {})

    @asynccontextmanager
    async def connect(_name: ClusterName, _config: ClusterConfig) -> AsyncIterator[ApiClient]:
        yield OddClient(odd, user="multikueue")

    client = DirectClient(bench.fleet.manager, user="multikueue")
    return bench, Manager(client, AdapterRegistry(rows), ManagerSettings(), connect, clock=now)


async def make_ray_job(bench: Bench, name: str) -> Json:
    """A RayJob of the manager's, with quota."""
    spec: Json = {"suspend": True, "managedBy": OURS, "rayClusterSpec": {}}
    metadata = {"name": name, "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": LOCAL_QUEUE_NAME}}
    body = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": metadata, "spec": spec}
    job = await bench.client().create(RAY_JOB.resource, body)
    await bench.make_workload(f"rayjob-{name}", [job], {})
    return job


async def make_child(bench: Bench, resource: Resource, parent: Json, name: str, **spec: Any) -> Json:
    """What an operator on the worker makes for one of our copies: with its labels and annotations."""
    metadata = {
        "name": name,
        "namespace": "default",
        "labels": parent["metadata"]["labels"],
        "annotations": parent["metadata"]["annotations"],
        "ownerReferences": [controller(parent)],
    }
    gvk = resource.gvk
    body = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "spec": spec}
    return await bench.client("worker1").create(resource, body)


def controller(parent: Json) -> Json:
    reference = {field: parent[field] for field in ("apiVersion", "kind")}
    reference |= {"name": parent["metadata"]["name"], "uid": parent["metadata"]["uid"]}
    return {**reference, "controller": True}


async def copied(bench: Bench, resource: Resource, name: str) -> Json:
    """Wait for a copy."""

    async def is_there() -> bool:
        return await bench.get(resource, name, "worker1") is not None

    await until(is_there)
    return await bench.get(resource, name, "worker1") or {}


async def notes(bench: Bench) -> list[str]:
    return [event["note"] for event in (await bench.fleet.admin.list(EVENT)).items if event["type"] == "Warning"]


async def test_the_cluster_of_a_ray_job_is_left_to_the_ray_job() -> None:
    """It has our label and the name of a Workload, perhaps of an earlier one: it is not changed later."""
    bench, manager = await bench_of(RAY_JOB, RAY_CLUSTER)
    async with bench.fleet.running(manager):
        await until(is_active(bench.fleet))
        await make_ray_job(bench, "ray")
        await bench.admit("rayjob-ray", "worker1")
        copy = await copied(bench, RAY_JOB.resource, "ray")
        await make_child(bench, RAY_CLUSTER.resource, copy, "ray-x7k2p")
        copy["metadata"]["labels"]["kueue.x-k8s.io/prebuilt-workload-name"] = "rayjob-ray-before"
        copy["metadata"]["annotations"]["kueue.x-k8s.io/prebuilt-workload-name"] = "rayjob-ray-before"
        await make_child(bench, RAY_CLUSTER.resource, copy, "ray-p9q4s")
        await bench.placed("rayjob-ray", "worker1")
        await anyio.sleep(120)
        clusters = (await bench.client("worker1").list(RAY_CLUSTER.resource)).items
        assert [cluster["metadata"]["name"] for cluster in clusters] == ["ray-p9q4s", "ray-x7k2p"]
        assert await bench.get(RAY_JOB.resource, "ray", "worker1") is not None


@pytest.mark.parametrize("spoilt", shared(["", "gone-x7k2p"], lambda name: "unreadable" if name else "read"))
async def test_the_kind_of_what_controls_a_job_is_watched_while_the_job_is_there(spoilt: str) -> None:
    """Only then it shows whose the job is; nothing has to be planned for that."""
    bench, manager = await bench_of(RAY_JOB, RAY_CLUSTER, spoilt=spoilt)
    metadata = {"name": "gone", "uid": "u", "labels": {ORIGIN_LABEL: "multikueue"}, "annotations": {}}
    parent = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": metadata}
    async with bench.fleet.running(manager):
        await until(is_active(bench.fleet))
        [informers] = [worker.known for worker in manager.workers]
        assert informers is not None
        watch = informers.watches.by_kind[RAY_JOB.resource.gvk]
        await until(lambda: watch.is_unwatched)
        await make_child(bench, RAY_CLUSTER.resource, parent, "gone-x7k2p")
        await until(lambda: not watch.is_unwatched, LATE_LOOK + LOOK_INTERVAL)
        await anyio.sleep(3 * UNUSED_AFTER)
        assert not watch.is_unwatched
        await bench.client("worker1").delete(RAY_CLUSTER.resource, ObjectKey("default", "gone-x7k2p"))
        await anyio.sleep(UNUSED_AFTER + 120)
        assert watch.is_unwatched


async def test_a_child_is_no_copy_of_a_workload_that_is_gone() -> None:
    """We delete its RayJob; the cluster is its operator's to remove, in its own time."""
    bench, manager = await bench_of(RAY_JOB, RAY_CLUSTER)
    async with bench.fleet.running(manager):
        await until(is_active(bench.fleet))
        await make_ray_job(bench, "ray")
        await bench.admit("rayjob-ray", "worker1")
        copy = await copied(bench, RAY_JOB.resource, "ray")
        await make_child(bench, RAY_CLUSTER.resource, copy, "ray-x7k2p")
        await bench.placed("rayjob-ray", "worker1")
        await bench.client().delete(WORKLOAD, ObjectKey("default", "rayjob-ray"))
        await bench.client().delete(RAY_JOB.resource, ObjectKey("default", "ray"))

        async def is_gone() -> bool:
            return await bench.get(RAY_JOB.resource, "ray", "worker1") is None

        await until(is_gone)
        await anyio.sleep(120)
        assert await bench.get(WORKLOAD, "rayjob-ray", "worker1") is None
        assert await bench.get(RAY_CLUSTER.resource, "ray-x7k2p", "worker1") is not None


async def test_a_child_of_a_kind_that_is_not_dispatched_is_none_of_ours() -> None:
    """RayJobs were dispatched once, and are not in the settings any more; their clusters run on."""
    bench, manager = await bench_of(RAY_CLUSTER)
    parent: Json = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "ray", "uid": "uid-1"}}
    parent["metadata"] |= {
        "labels": {"kueue.x-k8s.io/multikueue-origin": "multikueue"},
        "annotations": {"kueue.x-k8s.io/prebuilt-workload-name": "rayjob-ray"},
    }
    await make_child(bench, RAY_CLUSTER.resource, parent, "ray-x7k2p")
    async with bench.fleet.running(manager):
        await until(is_active(bench.fleet))
        await anyio.sleep(120)
        assert await bench.get(RAY_CLUSTER.resource, "ray-x7k2p", "worker1") is not None


@pytest.mark.parametrize(("api_version", "kind"), [("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")])
async def test_a_copy_that_something_has_adopted_stays_a_copy_and_is_told(api_version: str, kind: str) -> None:
    """By its labels: a StatefulSet is a job kind, but this one is not among ours."""
    bench, manager = await bench_of(POD, ROWS["StatefulSet"])
    async with bench.fleet.running(manager):
        await until(is_active(bench.fleet))
        await bench.make_group("a", "b")
        await bench.admit(GROUP, "worker1")
        await bench.placed(GROUP, "worker1")
        owner = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web", "uid": "uid-of-web"}}
        patch = {"metadata": {"ownerReferences": [controller(owner)]}}
        await copied(bench, POD.resource, "a")
        await bench.client("worker1").merge_patch(POD.resource, ObjectKey("default", "a"), patch)
        note = (
            f'{kind} "web" on worker cluster "worker1" has adopted the copy Pod "a" and may delete it: '
            "let its selector not match the labels of what comes from other clusters"
        )

        async def is_told() -> bool:
            return note in await notes(bench)

        await until(is_told)
        await bench.client().delete(WORKLOAD, ObjectKey("default", GROUP))
        await bench.shows({}, "worker1")


STATEFUL_SET = ROWS["StatefulSet"].resource
SET: Json = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"namespace": "n", "name": "web", "uid": "uid-of-web", "resourceVersion": "4"},
}


@asynccontextmanager
async def sets(*lists: ObjectList | Exception, steps: Sequence[Step] = ()) -> AsyncIterator[MutationCache]:
    """Our StatefulSets on a worker that answers lists with these."""
    cache = MutationCache(Informer(FakeServer(list(lists), [[*steps, wait(1e6)]]), STATEFUL_SET))
    async with running(cache.informer.run):
        await anyio.sleep(1)
        yield cache


def is_made_by_the_set(cache: MutationCache) -> bool:
    """Whether one of the set's pods counts as made by a job of ours."""
    pod: Json = {"metadata": {"namespace": "n", "name": "web-0", "ownerReferences": [controller(SET)]}}
    return is_child(pod, {STATEFUL_SET.gvk: cache})


async def test_a_set_of_ours_has_made_its_pods_by_its_uid() -> None:
    other = {**SET, "metadata": {**SET["metadata"], "uid": "another"}}
    async with sets(listed("5", SET)) as ours, sets(listed("5", other)) as others, sets(listed("5")) as none:
        assert [is_made_by_the_set(cache) for cache in (ours, others, none)] == [True, False, False]


async def test_a_set_that_was_just_written_or_deleted_has_made_its_pods() -> None:
    """They end after it does."""
    async with sets(listed("5")) as written, sets(listed("5", SET)) as deleted:
        written.wrote({**SET, "metadata": {**SET["metadata"], "resourceVersion": "6"}})
        deleted.removed(ObjectKey("n", "web"), "uid-of-web")
        assert [is_made_by_the_set(cache) for cache in (written, deleted)] == [True, True]


async def test_nobody_takes_a_pod_for_a_copy_of_ours_before_the_sets_can_be_read() -> None:
    """What counts as a copy is deleted."""
    unread = MutationCache(Informer(FakeServer([listed("5")], [[]]), STATEFUL_SET))
    async with sets(Unreachable("down")) as down, sets(listed("5"), steps=[Refused(NotFound("no such kind"))]) as lost:
        assert [cache.informer.status.synced for cache in (unread, down, lost)] == [False, False, True]
        assert [is_made_by_the_set(cache) for cache in (unread, down, lost)] == [True, True, True]
