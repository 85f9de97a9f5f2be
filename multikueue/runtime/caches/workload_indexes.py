"""The indexes of the manager's Workloads: by job, by admission check, by quota, and by worker; and of copies."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Final

from multikueue.core.machinery.resync import runs_on
from multikueue.core.model.labels import ORIGIN_NAMESPACE_ANNOTATION
from multikueue.core.model.names import GVK, Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, namespace_of
from multikueue.core.model.placements import former_places
from multikueue.core.model.worker_names import origin_key
from multikueue.core.model.workload_facts import WORKLOADS
from multikueue.core.model.workloads import (
    checks,
    cluster_name,
    finish_reason,
    has_quota,
    is_elastic,
    is_finished,
    noted_worker,
    owner,
)
from multikueue.kube.informers.indexer import Indexer


def owner_entry(gvk: GVK, key: ObjectKey) -> str:
    """The entry under which a job's Workloads are found: in the index `owner`, or `member` for groups."""
    return f"{gvk}|{key}"


def _owner_entries(workload: Json) -> list[str]:
    owned_by, namespace = WORKLOADS.of(workload).owner, namespace_of(workload)
    return [owner_entry(owned_by.gvk, ObjectKey(namespace, owned_by.name))] if owned_by else []


def _member_entries(workload: Json) -> list[str]:
    """All owners of a Workload that stands for several jobs."""
    references = dig(workload, "metadata", "ownerReferences") if WORKLOADS.of(workload).has_members else None
    namespace = namespace_of(workload)
    return [
        owner_entry(GVK.of(reference["apiVersion"], reference["kind"]), ObjectKey(namespace, reference["name"]))
        for reference in references or ()
    ]


def check_names(workload: Json) -> list[str]:
    """The AdmissionChecks of a Workload."""
    return [entry.get("name", "") for entry in checks(workload)]


def _quota_entries(workload: Json) -> list[str]:
    """The ClusterQueue whose quota a Workload holds, with each of its checks; few texts for many Workloads."""
    queue = WORKLOADS.of(workload).cluster_queue
    return [sys.intern(f"{queue}|{name}") for name in check_names(workload)] if queue else []


UNPLACED: Final = "unplaced"
"""The entry of the index `worker` for Workloads that no worker has."""


MOVING: Final = "moving"
"""The entry of the index `worker` for Workloads that shall leave the worker that has them."""


def placed_entry(worker: str) -> str:
    """The entry of the index `worker` for Workloads that the worker has."""
    return f"placed|{worker}"


def offered_entry(worker: str) -> str:
    """The entry of the index `worker` for Workloads that are offered to the worker, and that no worker has.

    They have the entry `UNPLACED` too."""
    return f"offered|{worker}"


def _worker_entries(workload: Json) -> list[str]:
    facts = WORKLOADS.of(workload)
    if facts.is_finished or not facts.has_quota:
        return []
    if facts.cluster_name is not None:
        return [sys.intern(placed_entry(facts.cluster_name)), *([MOVING] if facts.leaves else [])]
    return [UNPLACED, *(sys.intern(offered_entry(name)) for name in facts.nominated)]


def _running_entries(workload: Json) -> list[str]:
    worker = runs_on(workload)
    return [sys.intern(worker)] if worker is not None else []


NAMED: Final = "named"
"""The index of those that name a worker which has or had them, by worker and kind of job: see `named_entry`."""


def named_entry(worker: str, kind: GVK) -> str:
    """The entry of the index `NAMED`. The version does not count: a kind is served in several."""
    return f"{worker}|{kind.kind}.{kind.group}"


def _named_entries(workload: Json) -> list[str]:
    facts = WORKLOADS.of(workload)
    if facts.owner is None or facts.is_finished:
        return []
    names = filter(None, {facts.cluster_name, facts.noted_worker})
    return [sys.intern(named_entry(name, facts.owner.gvk)) for name in names]


LEFT: Final = "left"
"""The index of those that say that a worker had them before, by worker."""


def _left_entries(workload: Json) -> list[str]:
    before = {noted_worker(workload), *former_places(workload)}
    return [sys.intern(name) for name in before if name]


RUNNING: Final = "running"
"""The index of those that run where they should, by worker."""
INDEXES: Final = {
    "owner": _owner_entries,
    "member": _member_entries,
    "check": check_names,
    "quota": _quota_entries,
    "worker": _worker_entries,
    RUNNING: _running_entries,
    NAMED: _named_entries,
    LEFT: _left_entries,
}
"""All of them, by name."""


def looking(workloads: Indexer) -> Set[ObjectKey]:
    """The Workloads that have quota and no worker, or shall leave theirs: any worker may be the one they get."""
    return workloads.keys_by("worker", UNPLACED) | workloads.keys_by("worker", MOVING)


def may_have_jobs(workloads: Indexer, worker: str, kind: GVK, copies: Iterable[Json]) -> bool:
    """Whether jobs of a kind may be on a worker: a Workload names it, or has a copy there.

    Args:
        workloads: the manager's.
        worker: its name.
        kind: of the jobs.
        copies: the Workloads that are there.
    """
    if workloads.keys_by(NAMED, named_entry(worker, kind)):
        return True
    owners = (owner(workloads.get(origin_key(copy)) or copy) for copy in copies)
    return any(owned_by is None or named_entry("", owned_by.gvk) == named_entry("", kind) for owned_by in owners)


PENDING: Final = "pending"
"""Index of copies without quota, by LocalQueue."""
HOLDING: Final = "holding"
"""Index of copies with quota, likewise."""


def _pending(copy: Json) -> Iterator[str]:
    if not has_quota(copy) and not is_finished(copy):
        yield _local_queue(copy)


def _holding(copy: Json) -> Iterator[str]:
    if has_quota(copy) and not is_finished(copy):
        yield _local_queue(copy)


def _local_queue(copy: Json) -> str:
    return str(ObjectKey(copy["metadata"].get("namespace", ""), dig(copy, "spec", "queueName") or ""))


def _origin(copy: Json) -> Iterator[str]:
    if ORIGIN_NAMESPACE_ANNOTATION in annotations_of(copy):
        yield str(origin_key(copy))


def _failed(copy: Json) -> Iterator[str]:
    if is_finished(copy) and finish_reason(copy) == "Failed":
        yield sys.intern(namespace_of(copy))


FAILED: Final = "failed"
"""Index of copies of jobs that have failed, by namespace there."""
ORIGIN: Final = "origin"
"""Index of copies in a namespace of another name than the manager's, by Workload."""
INDEXES_THERE: Final = {ORIGIN: _origin, FAILED: _failed}
"""Of the copies on a worker."""
QUOTA_INDEXES: Final = {PENDING: _pending, HOLDING: _holding}
"""Of the copies on a worker, where figures are looked at."""


def named_by(workload: Json | None) -> Iterator[str]:
    """The workers that a Workload names: an earlier process may have created copies there."""
    if workload is not None:
        facts = WORKLOADS.of(workload)
        yield from (*facts.nominated, *filter(None, (facts.cluster_name, facts.noted_worker)))


def named_by_slices(workload: Json | None, siblings: Sequence[Json]) -> Iterator[str]:
    """The workers of the other slices of an elastic job: what runs for them is its job."""
    for sibling in siblings if workload is not None and is_elastic(workload) else ():
        yield from filter(None, (cluster_name(sibling), noted_worker(sibling)))
