"""The job kinds the small Kueue and the job runner know: one row per kind, batch/v1 Job for now."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Final

import attrs

from multikueue.core.conditions import conditions
from multikueue.core.kinds import JOB
from multikueue.core.labels import STOPPING_ANNOTATION
from multikueue.core.names import Json, Resource
from multikueue.core.objects import annotations_of, dig


@attrs.frozen
class Ending:
    """How a job ended, in the words of a Workload's Finished condition."""

    reason: str
    """`Succeeded` or `Failed`."""
    message: str


@attrs.frozen
class SandboxKind:
    """One job kind, as the small Kueue sees it. The functions are pure."""

    resource: Resource
    integration: str
    """Kueue's name of the integration, as `batch/job`; the events of its controller carry it."""
    suspend: tuple[str, ...]
    """Path of the field that suspends the job."""
    pod_sets: Callable[[Json], list[Json]]
    """The Workload's pod sets for a job."""
    templates: Callable[[Json], dict[str, Json]]
    """The job's pod templates by pod set name: the very parts of the object, to be changed in place."""
    ending: Callable[[Json], Ending | None]
    is_active: Callable[[Json], bool]
    """Whether pods of the job are still there: as long as they are, quota is held."""
    pods_ready: Callable[[Json], bool]
    generated_labels: tuple[str, ...] = ()
    """Template labels the API server fills in; no part of the Workload."""
    resets_start_time: bool = False
    """Whether the template may only be edited once `status.startTime` is gone."""

    @property
    def controller(self) -> str:
        """The name events of this kind's controller are reported under."""
        return f"{self.integration}-kueue-controller"

    def is_suspended(self, job: Json) -> bool:
        """Whether the job is suspended, and not just being stopped."""
        return bool(dig(job, *self.suspend)) and annotations_of(job).get(STOPPING_ANNOTATION) != "true"


_GENERATED: Final = ("job-name", "controller-uid", "batch.kubernetes.io/controller-uid")


def _job_pods(job: Json) -> int:
    parallelism = _number(dig(job, "spec", "parallelism"), 1)
    return min(parallelism, _number(dig(job, "spec", "completions"), parallelism))


def _job_pod_sets(job: Json) -> list[Json]:
    template = copy.deepcopy(dig(job, "spec", "template") or {})
    metadata = template.get("metadata") or {}
    labels = {label: value for label, value in (metadata.get("labels") or {}).items() if label not in _GENERATED}
    metadata.pop("labels", None)
    if labels:
        metadata["labels"] = labels
    return [
        {
            "name": "main",
            "count": _job_pods(job),
            "template": template,
            "topologyRequest": {"podIndexLabel": "batch.kubernetes.io/job-completion-index"},
        }
    ]


def _job_templates(job: Json) -> dict[str, Json]:
    return {"main": job["spec"].setdefault("template", {})}


def _job_ending(job: Json) -> Ending | None:
    for entry in conditions(job):
        if entry.get("type") in ("Complete", "Failed") and entry.get("status") == "True":
            reason = "Succeeded" if entry["type"] == "Complete" else "Failed"
            return Ending(reason, entry.get("message") or "")
    return None


def _job_is_active(job: Json) -> bool:
    return _number(dig(job, "status", "active"), 0) != 0


def _job_pods_ready(job: Json) -> bool:
    ready = _number(dig(job, "status", "ready"), 0) + _number(dig(job, "status", "succeeded"), 0)
    return ready >= _job_pods(job)


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) else default


BATCH_JOB: Final = SandboxKind(
    resource=JOB,
    integration="batch/job",
    suspend=("spec", "suspend"),
    pod_sets=_job_pod_sets,
    templates=_job_templates,
    ending=_job_ending,
    is_active=_job_is_active,
    pods_ready=_job_pods_ready,
    generated_labels=_GENERATED,
    resets_start_time=True,
)

KINDS: Final = (BATCH_JOB,)
"""All rows."""
