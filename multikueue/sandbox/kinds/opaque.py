"""Pods that a job does not describe: workflows, whose pods come from elsewhere.

What Kueue should count stands in annotations of the job, and so does whether Kueue has started it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, dig
from multikueue.sandbox.kinds.injecting import WORKLOAD_ANNOTATION, Injection, is_noted
from multikueue.sandbox.kinds.roles import pod_set

REQUEST_ANNOTATION: Final = "sandbox.multikueue.dev/request-"
"""On a job, with the name of a resource: how much of it the job needs, as `sandbox.multikueue.dev/request-cpu: "1"`."""

_POD_SET: Final = "main"


class OpaquePods:
    """One pod set of one pod. Implements `multikueue.sandbox.kinds.roles.PodSets`."""

    def read(self, job: Json) -> list[Json]:
        """See `PodSets`."""
        requests = {
            key.removeprefix(REQUEST_ANNOTATION): value
            for key, value in sorted(annotations_of(job).items())
            if key.startswith(REQUEST_ANNOTATION)
        }
        container = {"name": "main", "image": "workflow", "resources": {"requests": requests}}
        return [pod_set(_POD_SET, 1, {"spec": {"restartPolicy": "Never", "containers": [container]}})]

    def counts(self, job: Json) -> Mapping[str, int]:
        """See `PodSets`."""
        del job
        return {_POD_SET: 1}

    def inject(self, job: Json, injections: Mapping[str, Injection]) -> None:
        """See `PodSets`."""
        noted = injections.get(_POD_SET, Injection()).annotations
        job["metadata"]["annotations"] = {**annotations_of(job), **noted}

    def restore(self, job: Json, originals: Mapping[str, Json]) -> None:
        """See `PodSets`."""
        del originals
        (job["metadata"].get("annotations") or {}).pop(WORKLOAD_ANNOTATION, None)

    def is_started(self, job: Json) -> bool:
        """See `PodSets`."""
        return is_noted(job)

    def fill(self, job: Json, template: Json) -> None:
        """See `PodSets`."""
        asked = dig(template["spec"]["containers"][0], "resources", "requests") or {}
        noted = {f"{REQUEST_ANNOTATION}{resource}": amount for resource, amount in asked.items()}
        job["metadata"]["annotations"] = {**noted, **annotations_of(job)}
