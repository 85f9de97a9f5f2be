"""Job kinds that workers still run jobs of, though the settings or the manager do not have them any more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import attrs

from multikueue.adapters import AVAILABLE, AdapterRegistry
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import GVK, Json
from multikueue.core.model.shape import outline, workload_flaw
from multikueue.core.model.slimmed import workload_slimmer
from multikueue.core.model.workloads import checks, cluster_name, is_evicted, is_finished, owner
from multikueue.errors import NotFound
from multikueue.kube.informers.list_pages import InitialList
from multikueue.protocols import ObjectList, Reader


@attrs.frozen
class RunningKinds:
    """The rows to work with, and how many Workloads that a worker has are of kinds that would not be followed."""

    adapters: AdapterRegistry
    waiting: Mapping[GVK, int]
    """By kind, those of kinds that the settings lack or the manager does not serve."""
    before: InitialList
    """The Workloads as they were read for this; see `Manager.before`."""


async def with_running_kinds(adapters: AdapterRegistry, manager: Reader) -> RunningKinds:
    """Add the built-in rows of kinds of which a worker may still run a job, and watch those that the manager lacks.

    Jobs of added kinds are followed to their end; new Workloads of them are rejected as those of any unknown kind. Of a
    kind without a built-in row the Workload copies alone can be followed.

    Args:
        adapters: the rows of the kinds that are dispatched.
        manager: the manager's API server.

    Raises:
        ApiError: the manager does not give its Workloads. Without Kueue's CRDs there are none.
    """
    try:
        listed = await manager.list(WORKLOAD, each=workload_slimmer())
    except NotFound:
        listed = ObjectList([], "")
    waiting, before = (
        Counter(_assigned_kinds(listed, adapters)),
        InitialList(listed if listed.resource_version else None),
    )
    known = {adapter.resource.gvk.group_kind for adapter in adapters}
    named = (kind for kind in AVAILABLE if kind.resource.gvk in waiting)
    drained = [attrs.evolve(kind, draining=True) for kind in named if kind.resource.gvk.group_kind not in known]
    rows = (adapter.row for adapter in adapters)
    kept = [attrs.evolve(row, unserved=False) if row.resource.gvk in waiting else row for row in rows]
    return RunningKinds(AdapterRegistry([*kept, *drained]) if waiting else adapters, waiting, before)


def _assigned_kinds(listed: ObjectList, adapters: AdapterRegistry) -> Iterable[GVK]:
    """The kind of each Workload that a worker may run, where the settings lack it or the manager does not serve it."""
    for workload in _assigned(listed):
        owned_by = owner(workload)
        if owned_by is not None and not _is_followed(adapters, owned_by.gvk):
            yield owned_by.gvk


def _assigned(listed: ObjectList) -> Iterator[Json]:
    """Each Workload that a worker may run; of those that cannot be read, what can be told of them."""
    for obj in listed.items:
        if workload_flaw(obj):
            yield outline(obj)
        elif _may_run(obj):
            yield obj
    yield from (unreadable.object for unreadable in listed.unreadable)


def _may_run(workload: Json) -> bool:
    if is_finished(workload):
        return False
    named = cluster_name(workload) is not None
    return named or (is_evicted(workload) and bool(checks(workload)))  # an eviction erases the name


def _is_followed(adapters: AdapterRegistry, gvk: GVK) -> bool:
    adapter = adapters.get(gvk)
    return adapter is not None and not adapters.missing_setting(gvk) and not adapter.row.unserved
