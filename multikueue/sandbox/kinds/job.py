"""`batch/v1` Job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from multikueue.core.model.kinds import JOB
from multikueue.core.model.labels import MIN_PARALLELISM_ANNOTATION, SAME_COMPLETIONS_ANNOTATION
from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, clone, dig
from multikueue.sandbox.kinds.injecting import Injection, inject, is_noted, restore
from multikueue.sandbox.kinds.job_course import JobCourse, pods_at_first
from multikueue.sandbox.kinds.kind import SandboxKind
from multikueue.sandbox.kinds.roles import PodSets, pod_set

_GENERATED: Final = ("job-name", "controller-uid", "batch.kubernetes.io/controller-uid")
"""Template labels the API server fills in; no part of the Workload."""
_INDEX_LABEL: Final = "batch.kubernetes.io/job-completion-index"
_POD_SET: Final = "main"


class JobPods(PodSets):
    """One template; completions limit the number of pods."""

    def read(self, job: Json) -> list[Json]:
        """See `PodSets`."""
        template = clone(dig(job, "spec", "template") or {})
        metadata = template.get("metadata") or {}
        labels = {label: value for label, value in (metadata.get("labels") or {}).items() if label not in _GENERATED}
        metadata.pop("labels", None)
        if labels:
            metadata["labels"] = labels
        made = pod_set(_POD_SET, pods_at_first(job), template, _INDEX_LABEL)
        least = annotations_of(job).get(MIN_PARALLELISM_ANNOTATION, "")
        return [{**made, "minCount": int(least)} if least.isdecimal() else made]

    def counts(self, job: Json) -> Mapping[str, int]:
        """See `PodSets`."""
        return {_POD_SET: pods_at_first(job)}

    def inject(self, job: Json, injections: Mapping[str, Injection]) -> None:
        """See `PodSets`."""
        inject(job["spec"].setdefault("template", {}), injections.get(_POD_SET, Injection()))

    def restore(self, job: Json, originals: Mapping[str, Json]) -> None:
        """See `PodSets`."""
        if _POD_SET in originals:
            restore(job["spec"].setdefault("template", {}), originals[_POD_SET], _GENERATED)

    def resize(self, job: Json, counts: Mapping[str, int]) -> None:
        """See `PodSets`."""
        noted = annotations_of(job)
        if noted.get(MIN_PARALLELISM_ANNOTATION, "").isdecimal() and _POD_SET in counts:
            job["spec"]["parallelism"] = counts[_POD_SET]
            if noted.get(SAME_COMPLETIONS_ANNOTATION) == "true":
                job["spec"]["completions"] = counts[_POD_SET]

    def is_started(self, job: Json) -> bool:
        """See `PodSets`."""
        return is_noted(dig(job, "spec", "template") or {})

    def fill(self, job: Json, template: Json) -> None:
        """See `PodSets`."""
        job["spec"].setdefault("template", clone(template))


BATCH_JOB: Final = SandboxKind(
    resource=JOB,
    integration="batch/job",
    operator="kubernetes.io/job-controller",
    pods=JobPods(),
    course=JobCourse(),
    resets_start_time=True,
)
