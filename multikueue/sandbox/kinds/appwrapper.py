"""`workload.codeflare.dev` AppWrapper.

The pods are described by the objects it wraps. Those stay as they are: what Kueue wants in the pods is written beside
them, as `podSetInfos` of the component.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from multikueue.core.model.names import GVK, Json, Resource
from multikueue.core.model.objects import clone, dig
from multikueue.sandbox.kinds.injecting import WORKLOAD_ANNOTATION, Injection
from multikueue.sandbox.kinds.kind import SandboxKind
from multikueue.sandbox.kinds.roles import pod_set
from multikueue.sandbox.kinds.stages import Stage, Stages

_POD_TEMPLATE: Final = "template.spec.template"
"""Where a wrapped Job has its pod template."""
_WRAPPED: Final = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "spec": {"parallelism": 1, "completions": 1},
}


class WrappedPods:
    """The pod sets that the components declare. Implements `PodSets`."""

    def read(self, job: Json) -> list[Json]:
        """See `PodSets`."""
        return [
            pod_set(name, declared.get("replicas", 1), clone(_at(component, declared["path"])))
            for name, component, declared in _declared(job)
        ]

    def counts(self, job: Json) -> Mapping[str, int]:
        """See `PodSets`."""
        return {name: declared.get("replicas", 1) for name, _, declared in _declared(job)}

    def inject(self, job: Json, injections: Mapping[str, Injection]) -> None:
        """See `PodSets`."""
        for component in job["spec"]["components"]:
            component.pop("podSetInfos", None)
        for name, component, _ in _declared(job):
            injection = injections.get(name, Injection())
            info = {
                "labels": injection.labels,
                "annotations": injection.annotations,
                "nodeSelector": injection.node_selector,
                "tolerations": list(injection.tolerations),
            }
            component.setdefault("podSetInfos", []).append({key: value for key, value in info.items() if value})

    def restore(self, job: Json, originals: Mapping[str, Json]) -> None:
        """See `PodSets`."""
        del originals
        for component in job["spec"]["components"]:
            component.pop("podSetInfos", None)

    def is_started(self, job: Json) -> bool:
        """See `PodSets`."""
        return any(
            (info.get("annotations") or {}).get(WORKLOAD_ANNOTATION)
            for component in dig(job, "spec", "components") or []
            for info in component.get("podSetInfos") or []
        )

    def fill(self, job: Json, template: Json) -> None:
        """See `PodSets`."""
        for component in job["spec"]["components"]:
            component["template"].setdefault("metadata", {"name": job["metadata"]["name"]})
            component["template"]["spec"].setdefault("template", clone(template))


def _declared(job: Json) -> Iterator[tuple[str, Json, Json]]:
    """Each pod set with its name, its component and its declaration."""
    number = 0
    for component in dig(job, "spec", "components") or []:
        for declared in component.get("podSets") or []:
            yield f"{job['metadata']['name']}-{number}", component, declared
            number += 1


def _at(component: Json, path: str) -> Json:
    """The template at a path such as `template.spec.replicaSpecs[0].template`; empty if there is none."""
    value: object = component
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        if index:
            value = value[int(index)] if isinstance(value, list) and int(index) < len(value) else None
        else:
            value = dig(value, name)
    return value if isinstance(value, dict) else {}


def _deployed(status: str) -> dict[str, str]:
    return {"QuotaReserved": status, "ResourcesDeployed": status}


KINDS: Final = (
    SandboxKind(
        resource=Resource(GVK("workload.codeflare.dev", "v1beta2", "AppWrapper"), "appwrappers"),
        integration="workload.codeflare.dev/appwrapper",
        operator="workload.codeflare.dev/appwrapper-controller",
        pods=WrappedPods(),
        course=Stages(
            suspended=Stage(
                fields={"phase": "Suspended"}, conditions=_deployed("False"), reason="Suspended", message="Suspended"
            ),
            starting=Stage(
                fields={"phase": "Running"},
                conditions={**_deployed("True"), "PodsReady": "False"},
                reason="InsufficientPodsReady",
                message="Pods are starting",
            ),
            running=Stage(
                fields={"phase": "Running"},
                conditions={**_deployed("True"), "PodsReady": "True"},
                reason="SufficientPodsReady",
                message="All pods run",
            ),
            succeeded=Stage(
                fields={"phase": "Succeeded"},
                conditions={"PodsReady": "False", "QuotaReserved": "False"},
                reason="PodsCompleted",
                message="AppWrapper finished successfully",
            ),
            failed=Stage(
                fields={"phase": "Failed"},
                conditions={"PodsReady": "False", **_deployed("False")},
                reason="FoundFailedPods",
                message="AppWrapper failed",
            ),
        ),
        spec={"components": [{"podSets": [{"replicas": 1, "path": _POD_TEMPLATE}], "template": _WRAPPED}]},
        columns=(("Status", ".status.phase"),),
        short_names=("aw",),
    ),
)
