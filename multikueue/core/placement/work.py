"""What decisions about configs go by of a Workload. There are thousands: it is read once for each version."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from multikueue.core.model import workloads
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import is_terminating
from multikueue.core.model.workloads import CheckState


@attrs.frozen(eq=False)
class Work:
    """One Workload of the manager."""

    object: Json
    key: ObjectKey
    states: Mapping[str, str]
    """The state of each of its checks."""
    finished: bool
    cluster: ClusterName | None
    """The worker that has it."""
    nominated: tuple[str, ...]
    """The workers that it is offered to."""
    open: bool
    """Whether Kueue listens to its checks."""

    @classmethod
    def of(cls, workload: Json) -> Work:
        """Read a Workload."""
        ended = is_terminating(workload) or workloads.is_finished(workload) or workloads.is_evicted(workload)
        return cls(
            workload,
            ObjectKey.of(workload),
            {str(one.get("name")): str(one.get("state") or CheckState.PENDING) for one in workloads.checks(workload)},
            workloads.is_finished(workload),
            workloads.cluster_name(workload),
            workloads.nominated(workload),
            not ended and workloads.is_active(workload) and workloads.has_quota(workload),
        )
