"""`jobset.x-k8s.io` JobSet."""

from __future__ import annotations

from typing import Final

import attrs

from multikueue.core.model.names import GVK, Json, Resource
from multikueue.core.model.objects import dig
from multikueue.sandbox.kinds.course import Moment
from multikueue.sandbox.kinds.kind import SandboxKind
from multikueue.sandbox.kinds.roles import EACH, InTemplates, Roles
from multikueue.sandbox.kinds.stages import Counters, Stage, Stages

COUNTERS: Final = ("active", "ready", "succeeded", "failed", "suspended")
"""Of the Jobs a JobSet makes."""


class JobSetStages(Stages):
    """Stages of a JobSet, whose status counts Jobs: one of several pods is ready once all of them are."""

    def pods_ready(self, job: Json) -> bool:
        """See `Course`."""
        wanted = _replicas(job)
        entries = dig(job, "status", COUNTED) or ()
        return bool(entries) and all(
            entry.get("ready", 0) + entry.get("succeeded", 0) >= wanted.get(entry.get("name"), 1) for entry in entries
        )

    def _status(self, job: Json, stage: Stage, moment: Moment) -> Json:
        status, wanted = super()._status(job, stage, moment), _replicas(job)
        for entry in status[COUNTED]:
            entry.update({name: wanted.get(entry["name"], 1) for name in COUNTERS if entry[name]})
        if stage is self.failed and status[COUNTED]:
            first, *others = status[COUNTED]
            first["failed"] = 1
            for entry in others:
                entry["failed"] = 0
            culprit = f" (first failed job: {job['metadata']['name']}-{first['name']}-0)"
            status["conditions"][-1]["message"] = stage.message + culprit
        return status


def _replicas(job: Json) -> dict[str, int]:
    """How many Jobs there are of each replicated job."""
    return {entry["name"]: entry.get("replicas", 1) for entry in dig(job, "spec", "replicatedJobs") or ()}


def pod_labels(job: Json, role: str, number: int) -> dict[str, str]:
    """What the pods of a JobSet of one Job per role are labelled with."""
    name = job["metadata"]["name"]
    return {
        "jobset.sigs.k8s.io/jobset-name": name,
        "jobset.sigs.k8s.io/replicatedjob-name": role,
        "jobset.sigs.k8s.io/job-index": "0",
        "batch.kubernetes.io/job-name": f"{name}-{role}-0",
        "batch.kubernetes.io/job-completion-index": str(number),
    }


COUNTED: Final = "replicatedJobsStatus"
_STARTING: Final = Stage(
    fields={"restarts": 0},
    conditions={"Suspended": "False"},
    counted=("active",),
    reason="ResumeJobs",
    message="jobset is resumed",
)
COURSE: Final = JobSetStages(
    suspended=Stage(
        fields={"restarts": 0},
        conditions={"Suspended": "True"},
        counted=("suspended",),
        reason="SuspendedJobs",
        message="jobset is suspended",
    ),
    starting=_STARTING,
    running=attrs.evolve(_STARTING, counted=("active", "ready")),
    succeeded=Stage(
        fields={"terminalState": "Completed"},
        conditions={"Completed": "True"},
        counted=("succeeded",),
        reason="AllJobsCompleted",
        message="jobset completed successfully",
    ),
    failed=Stage(
        fields={"terminalState": "Failed"},
        conditions={"Failed": "True"},
        counted=("failed",),
        reason="FailedJobs",
        message="jobset failed due to one or more job failures",
    ),
    counters=Counters(COUNTED, COUNTERS),
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
        pod_labels=pod_labels,
        makes_jobs=True,
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
