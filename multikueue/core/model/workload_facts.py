"""What one version of a Workload says, read once: every row of the plan asks for it, and many rows ask again."""

from __future__ import annotations

import attrs

from multikueue.core.model.conditions import conditions
from multikueue.core.model.labels import MOVE_FROM_ANNOTATION
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import annotations_of, is_terminating
from multikueue.core.model.workloads import (
    Owner,
    attempt,
    cluster_name,
    component_index,
    has_members,
    is_active,
    is_elastic,
    is_replaced,
    nominated,
    noted_worker,
    owner,
)


@attrs.frozen(eq=False)
class WorkloadFacts:
    """A Workload of the manager, as the plan asks about it. See `workloads` for what each of these means."""

    has_quota: bool
    is_admitted: bool
    is_evicted: bool
    is_finished: bool
    is_replaced: bool
    is_active: bool
    is_terminating: bool
    is_elastic: bool
    has_members: bool
    component_index: int | None
    cluster_name: ClusterName | None
    noted_worker: ClusterName | None
    nominated: tuple[str, ...]
    owner: Owner | None
    attempt: str
    """The one that new copies are made for."""
    leaves: ClusterName | None
    """The worker that somebody asked to move it away from; None: nobody asked."""

    @property
    def is_live(self) -> bool:
        """Whether it has quota, has not ended, and nobody has deleted it."""
        return self.has_quota and not self.is_finished and not self.is_terminating


def facts_of(workload: Json) -> WorkloadFacts:
    """Read a Workload, in one pass over its conditions."""
    statuses = {one.get("type"): one.get("status") for one in reversed(conditions(workload))}
    return WorkloadFacts(
        has_quota=statuses.get("QuotaReserved") == "True",
        is_admitted=statuses.get("Admitted") == "True",
        is_evicted=statuses.get("Evicted") == "True",
        is_finished=statuses.get("Finished") == "True",
        is_replaced=is_replaced(workload),
        is_active=is_active(workload),
        is_terminating=is_terminating(workload),
        is_elastic=is_elastic(workload),
        has_members=has_members(workload),
        component_index=component_index(workload),
        cluster_name=cluster_name(workload),
        noted_worker=noted_worker(workload),
        nominated=nominated(workload),
        owner=owner(workload),
        attempt=attempt(workload),
        leaves=ClusterName(annotations_of(workload).get(MOVE_FROM_ANNOTATION) or "") or None,
    )
