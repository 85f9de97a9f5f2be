"""`jobset.x-k8s.io` JobSet."""

from __future__ import annotations

from multikueue.adapters.kind import JobKind
from multikueue.adapters.rules import Delegation, StatusRules, counters_at_zero, finished_by_conditions
from multikueue.core.model.names import GVK, Resource

KINDS = (
    JobKind(
        resource=Resource(GVK("jobset.x-k8s.io", "v1alpha2", "JobSet"), "jobsets"),
        framework="jobset.x-k8s.io/jobset",
        delegation=Delegation(own_controller="jobset.sigs.k8s.io/jobset-controller"),
        status=StatusRules(
            finished=finished_by_conditions(succeeded="Completed", failed="Failed"),
            stopped=counters_at_zero(("replicatedJobsStatus", "*", "active"), ("replicatedJobsStatus", "*", "ready")),
        ),
    ),
)
