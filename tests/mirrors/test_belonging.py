"""Whose a pod is: by what controls it, also where something is in between, and where namespaces have other names."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from multikueue.adapters import AVAILABLE
from multikueue.core.model.kinds import JOB, LOCAL_QUEUE, MULTIKUEUE_CLUSTER, NAMESPACE, POD
from multikueue.core.model.labels import NAMESPACES_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, name_of, uid
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.kinds import definition
from multikueue.sandbox.kinds.jobset import KINDS
from multikueue.sandbox.setting_up import local_queue, namespace
from multikueue.testing import until
from multikueued.mirror_names import WORKER, WORKER_POD
from multikueued.mirrors.mirror import RUNS_POD
from tests.adapters.kinds import a_job, row
from tests.mirrors.showing import LONG, Shown, prepared, showing
from tests.runtime.fleet import Fleet

pytestmark = pytest.mark.looptime

JOBSET = row("JobSet").resource


def a_pod(name: str, owner: Json | None, **labels: str) -> Json:
    """A pod that somebody makes on a worker."""
    metadata: Json = {"namespace": "default", "name": name, "labels": {RUNS_POD: "true", **labels}}
    if owner is not None:
        reference = {"apiVersion": "batch/v1", "kind": "Job", "name": name_of(owner), "uid": uid(owner)}
        metadata["ownerReferences"] = [{**reference, "controller": True}]
    spec = {"nodeName": "n", "containers": [{"name": "main", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


async def test_the_pods_of_a_jobset_are_owned_by_it() -> None:
    """Its Jobs are not on the manager."""
    shown = await prepared(await Fleet.connected("worker1", cpu=50))
    for server in (shown.fleet.manager, *shown.fleet.workers.values()):
        server.registry.create_object(definition(KINDS[0]))
    made = a_job(row("JobSet"))
    made["metadata"] = {"name": "mine", "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": "user-queue"}}
    kinds = [kind for kind in AVAILABLE if kind.resource == JOBSET]
    async with shown.fleet.kueues(LONG, KINDS), shown.fleet.dispatching(shown.manager(kinds=kinds)):
        stored = await shown.fleet.admin.create(JOBSET, made)
        await until(shown.mirrors)
        mirrors, pods = await shown.mirrors(), await shown.pods()
    assert {name_of(one) for one in mirrors} <= {name_of(one) for one in pods}
    assert {one["metadata"]["ownerReferences"][0]["uid"] for one in mirrors} == {uid(stored)}
    assert {one["metadata"]["ownerReferences"][0]["kind"] for one in pods} == {"Job"}


async def test_a_mirror_is_in_the_managers_namespace() -> None:
    shown = await prepared(await Fleet.connected("worker1"))
    worker = DirectClient(shown.fleet.workers["worker1"])
    await worker.create(NAMESPACE, namespace("mk-default"))
    await worker.create(LOCAL_QUEUE, local_queue("mk-default"))
    said = {"metadata": {"annotations": {NAMESPACES_ANNOTATION: json.dumps({"default": "mk-default"})}}}
    await shown.fleet.admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"), said)
    async with shown.fleet.kueues(LONG), shown.fleet.dispatching(shown.manager()):
        await shown.fleet.submit()
        (mirror,) = await shown.count(1)
    assert mirror["metadata"]["namespace"] == "default"
    assert annotations_of(mirror)[WORKER_POD] == f"mk-default/{name_of(mirror)}"


@pytest.mark.parametrize("said", ["nothing", "another's UID", "a job of the worker's own"])
async def test_pods_that_others_make_on_a_worker_are_not_shown(said: str) -> None:
    async with showing() as shown:
        await shown.fleet.submit()
        await shown.count(1)
        worker = DirectClient(shown.fleet.workers["worker1"])
        copy = await worker.get(JOB, ObjectKey("default", "job"))
        owner: Json | None = None
        if said == "another's UID":
            owner = {"metadata": {**copy["metadata"], "uid": "11111111-1111-4111-8111-111111111111"}}
        elif said == "a job of the worker's own":
            await shown.fleet.submit("own", worker="worker1")
            owner = await worker.get(JOB, ObjectKey("default", "own"))
        await worker.create(POD, a_pod("theirs", owner, **{"batch.kubernetes.io/job-name": "job"}))
        await anyio.sleep(90)
        assert "theirs" not in {name_of(one) for one in await shown.mirrors()}


async def test_an_attempt_that_counts_takes_the_name_of_one_that_is_over() -> None:
    """As the pods of Kubeflow's jobs, whose names are the same on each worker."""
    async with showing("worker1", "worker2") as shown:
        await shown.fleet.submit()
        (mirror,) = await shown.count(1)
        first = annotations_of(mirror)[WORKER]
        await _fixed(shown, first)
        await until(lambda: _shows(shown, "fixed", first))
        shown.fleet.workers[first].faults.partition("reset")
        await until(lambda: _moved(shown, first), 2_000)
        second = ({"worker1", "worker2"} - {first}).pop()
        await _fixed(shown, second)
        await until(lambda: _shows(shown, "fixed", second))
        names = [name_of(one) for one in await shown.mirrors()]
        assert len(set(names)) == len(names)


async def _fixed(shown: Shown, worker: str) -> None:
    """A pod of the run on a worker whose name is always the same."""
    there = DirectClient(shown.fleet.workers[worker])
    await there.create(POD, a_pod("fixed", await there.get(JOB, ObjectKey("default", "job"))))


async def _shows(shown: Shown, name: str, worker: str) -> bool:
    found = [one for one in await shown.mirrors() if name_of(one) == name]
    return [annotations_of(one)[WORKER] for one in found] == [worker]


async def _moved(shown: Shown, first: str) -> bool:
    on: Any = dig(await shown.fleet.workload(), "status", "clusterName")
    return bool(on) and on != first and bool((await DirectClient(shown.fleet.workers[on]).list(JOB)).items)
