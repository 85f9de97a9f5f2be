"""Which Workloads of one job have to hear of a change of another: as few as will do, or large groups would storm."""

from __future__ import annotations

from collections.abc import Sequence

from multikueue.core.model.names import Json
from multikueue.core.model.workloads import cluster_name, component_index, is_elastic, is_replaced


def have_kin(workload: Json) -> bool:
    """Whether other Workloads may stand for the same job: slices of an elastic job, parts of a group."""
    return is_elastic(workload) or component_index(workload) is not None


def concerned(old: Json | None, new: Json | None, siblings: Sequence[Json]) -> list[Json]:
    """The siblings whose next step may depend on this change.

    Args:
        old: the Workload before; None if it is new.
        new: the Workload now; None if it is gone.
        siblings: the other Workloads of its job.
    """
    changed = new or old
    if changed is None or not have_kin(changed) or (old is not None and new is not None and _says(old) == _says(new)):
        return []
    if is_elastic(changed):
        return list(siblings)
    place = cluster_name(changed) or (cluster_name(old) if old is not None else None)
    if place is None:  # it came or went before it had a place: the group may be complete now
        return sorted(siblings, key=lambda one: component_index(one) or 0)[:1]
    if any(cluster_name(one) == place for one in siblings):
        return []  # the group was there before, and is there still
    return list(siblings)


def _says(workload: Json) -> tuple[object, ...]:
    return (cluster_name(workload), is_replaced(workload))
