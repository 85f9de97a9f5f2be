"""`jobset.x-k8s.io` JobSet."""

from __future__ import annotations

from typing import Final

from multikueue.core.model.names import GVK, Resource
from multikueue.sandbox.kinds.kind import SandboxKind
from multikueue.sandbox.kinds.roles import EACH, InTemplates, Roles
from multikueue.sandbox.kinds.stages import Counters, Stage, Stages

COUNTERS: Final = ("active", "ready", "succeeded", "failed", "suspended")
"""Of the Jobs a JobSet makes."""

COURSE: Final = Stages(
    suspended=Stage(
        conditions={"Suspended": "True"}, counted=("suspended",), reason="SuspendedJobs", message="jobset is suspended"
    ),
    starting=Stage(
        fields={"restarts": 0},
        conditions={"Suspended": "False"},
        counted=("active",),
        reason="ResumeJobs",
        message="jobset is resumed",
    ),
    running=Stage(
        fields={"restarts": 0},
        conditions={"Suspended": "False", "StartupPolicyCompleted": "True"},
        counted=("active", "ready"),
        reason="StartupPolicyCompleted",
        message="all replicated jobs are ready",
    ),
    succeeded=Stage(
        fields={"terminalState": "Completed"},
        conditions={"StartupPolicyCompleted": "False", "Completed": "True"},
        counted=("succeeded",),
        reason="AllJobsCompleted",
        message="jobset completed successfully",
    ),
    failed=Stage(
        fields={"terminalState": "Failed"},
        conditions={"StartupPolicyCompleted": "False", "Failed": "True"},
        counted=("failed",),
        reason="FailedJobs",
        message="jobset failed due to one or more job failures",
    ),
    counters=Counters("replicatedJobsStatus", COUNTERS),
)

KINDS: Final = (
    SandboxKind(
        resource=Resource(GVK("jobset.x-k8s.io", "v1alpha2", "JobSet"), "jobsets"),
        integration="jobset.x-k8s.io/jobset",
        operator="jobset.sigs.k8s.io/jobset-controller",
        pods=InTemplates(
            (
                Roles(
                    at=("spec", "replicatedJobs", EACH),
                    template=("template", "spec", "template"),
                    counts=(("replicas",), ("template", "spec", "parallelism")),
                    named_by="name",
                    index_label="batch.kubernetes.io/job-completion-index",
                ),
            )
        ),
        course=COURSE,
        spec={
            "replicatedJobs": [
                {"name": "leader", "replicas": 1, "template": {"spec": {"parallelism": 1, "completions": 1}}},
                {"name": "workers", "replicas": 1, "template": {"spec": {"parallelism": 2, "completions": 2}}},
            ]
        },
        columns=(
            ("TerminalState", ".status.terminalState"),
            ("Restarts", ".status.restarts"),
            ("Suspended", ".spec.suspend"),
        ),
    ),
)
