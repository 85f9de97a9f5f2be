"""What waits for an object that cannot be read, and what it hides."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Final, cast
from unittest import mock

import pytest

from multikueue.core.model.kinds import JOB, POD, WORKLOAD
from multikueue.core.model.labels import GROUP_WORKLOAD_ANNOTATION, ORIGIN_NAMESPACE_ANNOTATION
from multikueue.core.model.names import GVK, ObjectKey, Resource
from multikueue.core.model.workloads import Owner
from multikueue.kube import Informer
from multikueue.protocols import UnreadableObject
from multikueue.runtime.caches.manager_cluster import ManagerCluster
from multikueue.runtime.caches.mutation_cache import MutationCache
from multikueue.runtime.caches.workload_indexes import INDEXES_THERE
from multikueue.runtime.reconcilers.unreadable import unreadable_copies, unreadable_job, unreadable_workload
from multikueue.runtime.workers.copies import WorkerCopies
from multikueue.runtime.workers.informers import WorkerInformers
from tests.runtime.fleet import Fleet

pytestmark = pytest.mark.looptime

OWN, SIBLING, STRANGER = (ObjectKey("default", name) for name in ("own", "sibling", "stranger"))
TRAIN: Final = Owner(JOB.gvk, "train")


def outlined(key: ObjectKey, owner: str = "", **metadata: object) -> UnreadableObject:
    """What can be told of an object that cannot be read."""
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": owner, "controller": True}
    known = {"name": key.name, "namespace": key.namespace, **({"ownerReferences": [reference]} if owner else {})}
    return UnreadableObject({"metadata": {**known, **metadata}}, "odd")


def known() -> ManagerCluster:
    """One whose caches know three Workloads, of two jobs, that can be read."""
    made = Fleet.of().build().cluster
    for key, owner in ((OWN, "train"), (SIBLING, "train"), (STRANGER, "other")):
        made.workloads.informer.put(key, outlined(key, owner).object)
    return made


@pytest.mark.parametrize(
    ("unreadable", "owner", "named"),
    [
        (None, TRAIN, ""),
        (OWN, TRAIN, "own"),
        (OWN, None, "own"),
        (SIBLING, TRAIN, "sibling"),
        (SIBLING, None, ""),
        (SIBLING, Owner(JOB.gvk, "other"), ""),
        (STRANGER, TRAIN, ""),
    ],
)
async def test_a_decision_waits_for_each_workload_of_the_job(
    unreadable: ObjectKey | None, owner: Owner | None, named: str
) -> None:
    manager = known()
    if unreadable is not None:
        manager.workloads.informer.unreadable.note(outlined(unreadable, "other" if unreadable == STRANGER else "train"))
    expected = f'Workload "{named}" cannot be read: odd' if named else ""
    assert unreadable_workload(manager, OWN, owner) == expected


@pytest.mark.parametrize(
    ("grouped", "unreadable", "reported"),
    [
        (False, None, ""),
        (False, "train", "train"),
        (False, "other", ""),
        (True, "other", "other"),
        (True, "train", ""),
        (True, "claims", "claims"),
    ],
)
async def test_a_decision_waits_for_its_job_or_each_of_its_group(
    grouped: bool, unreadable: str | None, reported: str
) -> None:
    """A group's are those that its Workload names, and those that name it."""
    marks = {GROUP_WORKLOAD_ANNOTATION: "true"} if grouped else {}
    named, manager = outlined(OWN, "other", annotations=marks).object, known()
    cache = manager.jobs[JOB.gvk]
    if unreadable is not None:
        cache.informer.unreadable.note(outlined(ObjectKey("default", unreadable)))
    with mock.patch.object(MutationCache, "unreadable_of", lambda _cache, key: _claiming(unreadable, key)):
        note = unreadable_job(manager, OWN, named, TRAIN)
    assert note == (f'Job "{reported}" cannot be read: odd' if reported else "")
    assert unreadable_job(manager, OWN, named, Owner(GVK("x", "v1", "Unknown"), "train")) == ""


def _claiming(unreadable: str | None, key: ObjectKey) -> set[ObjectKey]:
    return {ObjectKey("default", "claims")} if unreadable == "claims" and key == OWN else set()


@pytest.mark.parametrize(
    ("resource", "outline", "workload_only", "hides"),
    [
        (WORKLOAD, outlined(OWN), False, "all"),
        (WORKLOAD, outlined(OWN), True, "all"),
        (WORKLOAD, outlined(SIBLING), False, ""),
        (JOB, outlined(ObjectKey("default", "train")), False, "jobs"),
        (JOB, outlined(ObjectKey("default", "train")), True, ""),
        (JOB, outlined(ObjectKey("default", "member")), False, "jobs"),
        (JOB, outlined(ObjectKey("default", "another")), False, ""),
        (JOB, outlined(ObjectKey("another", "train")), False, ""),
        (POD, outlined(ObjectKey("default", "train")), False, ""),
        (JOB, outlined(ObjectKey("default", "train"), "a job that made it"), False, ""),
    ],
)
async def test_what_a_worker_hides(
    resource: Resource, outline: UnreadableObject, workload_only: bool, hides: str
) -> None:
    """A copy that cannot be read hides the worker's jobs, its Workload copy everything; of others nothing."""
    manager = known()
    pods = MutationCache(Informer(manager.client, POD, indexes={"workload": lambda _: []}))
    caches = {WORKLOAD: manager.workloads, JOB: manager.jobs[JOB.gvk], POD: pods}
    caches[resource].informer.unreadable.note(outline)
    jobs = {JOB.gvk: caches[JOB], POD.gvk: pods}
    informers = cast(WorkerInformers, SimpleNamespace(workloads=manager.workloads, jobs=jobs))
    names = None if workload_only else {"member"}
    why, jobs_only = unreadable_copies(informers, OWN, TRAIN, OWN.namespace, names)
    assert bool(why) == bool(hides)
    assert (bool(why) and jobs_only) == (hides == "jobs")


@pytest.mark.parametrize("unreadable", [False, True])
async def test_a_copy_tells_where_it_is_also_if_the_rest_of_it_cannot_be_read(unreadable: bool) -> None:
    """Where nothing else said so, its job was looked for in another namespace, and sent back while it ran."""
    client = Fleet.of().build().cluster.client
    workloads = Informer(client, WORKLOAD, indexes=INDEXES_THERE)
    outline = outlined(ObjectKey("mk-default", "own"), annotations={ORIGIN_NAMESPACE_ANNOTATION: "default"})
    if unreadable:
        workloads.unreadable.note(outline)
    else:
        workloads.put(ObjectKey.of(outline.object), outline.object)
    assert WorkerCopies(client, MutationCache(workloads), {}).copies_of(OWN) == [outline.object]
