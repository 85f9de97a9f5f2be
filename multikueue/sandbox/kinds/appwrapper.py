"""`workload.codeflare.dev` AppWrapper.

The pods are described by the objects it wraps. Those stay as they are: what Kueue wants in the pods is written beside
them, as `podSetInfos` of the component.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from multikueue.core.model.conditions import is_true
from multikueue.core.model.names import GVK, Json, Resource
from multikueue.core.model.objects import clone, dig
from multikueue.sandbox.kinds import jobset, kubeflow, ray
from multikueue.sandbox.kinds.course import Ending, Moment
from multikueue.sandbox.kinds.injecting import WORKLOAD_ANNOTATION, Injection, inject
from multikueue.sandbox.kinds.job import BATCH_JOB
from multikueue.sandbox.kinds.kind import PLAIN, SandboxKind
from multikueue.sandbox.kinds.pods import POD
from multikueue.sandbox.kinds.roles import PodSets, pod_set
from multikueue.sandbox.kinds.stages import Stage, Stages

_POD_TEMPLATE: Final = "template.spec.template"
"""Where a wrapped Job has its pod template."""
_WRAPPED: Final = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "spec": {"parallelism": 1, "completions": 1},
}


_KNOWN: Final = ("job", "jobset", "pod", "pytorchjob", "raycluster", "rayjob")
_INFERRED: Final[Mapping[GVK, PodSets]] = {
    **{
        row.resource.gvk: row.pods
        for row in (BATCH_JOB, POD, *jobset.KINDS, *kubeflow.KINDS, *ray.KINDS)
        if row.name in _KNOWN
    },
    **{GVK("apps", "v1", kind): PLAIN for kind in ("Deployment", "StatefulSet")},
}
"""What is wrapped without a word about its pods: its controller knows where these kinds have them."""


class WrappedPods(PodSets):
    """The pod sets that the components declare, or that are those of what they wrap."""

    def read(self, job: Json) -> list[Json]:
        """See `PodSets`."""
        return [pod_set(name, pods["count"], clone(pods["template"])) for name, _, pods in _listed(job)]

    def running(self, job: Json) -> list[Json]:
        """See `PodSets`. The controller of AppWrappers merges the infos into what is wrapped."""
        pod_sets = self.read(job)
        for entry, info in zip(pod_sets, _infos(job), strict=True):
            inject(entry["template"], Injection.in_fields(info, info))
        return pod_sets

    def inject(self, job: Json, injections: Mapping[str, Injection]) -> None:
        """See `PodSets`."""
        for component in job["spec"]["components"]:
            component.pop("podSetInfos", None)
        for name, component, _ in _listed(job):
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


def _listed(job: Json) -> Iterator[tuple[str, Json, Json]]:
    """Each pod set with its name and its component, and their number and template."""
    number = 0
    for component in dig(job, "spec", "components") or []:
        for pods in _pods_of(component):
            yield f"{job['metadata']['name']}-{number}", component, pods
            number += 1


def _pods_of(component: Json) -> list[Json]:
    declared, wrapped = component.get("podSets"), component.get("template") or {}
    if not declared:
        known = _INFERRED.get(GVK.of(wrapped.get("apiVersion", ""), wrapped.get("kind", "")))
        return known.read(wrapped) if known else []
    return [{"count": entry.get("replicas", 1), "template": _at(component, entry["path"])} for entry in declared]


def _infos(job: Json) -> Iterator[Json]:
    """What is to be put into each pod set; empty if its component does not say."""
    for component in dig(job, "spec", "components") or []:
        infos = iter(component.get("podSetInfos") or [])
        yield from (next(infos, {}) for _ in _pods_of(component))


def _at(component: Json, path: str) -> Json:
    """The template at a path such as `template.spec.replicaSpecs[0].template`; empty if there is none."""
    value: object = component
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        if index:
            value = value[int(index)] if isinstance(value, list) and int(index) < len(value) else None
        else:
            value = dig(value, name)
    return value if isinstance(value, dict) else {}


class AppWrapperStages(Stages):
    """Stages of an AppWrapper. One that has failed is at its end once what it wraps is gone."""

    def ending(self, job: Json) -> Ending | None:
        """See `Course`."""
        deployed = dig(job, "status", "phase") == "Failed" and is_true(job, "ResourcesDeployed")
        return None if deployed else super().ending(job)

    def is_active(self, job: Json) -> bool:
        """See `Course`. Kueue asks for the same."""
        return is_true(job, "QuotaReserved")

    def _status(self, job: Json, stage: Stage, moment: Moment) -> Json:
        status, number = super()._status(job, stage, moment), str(sum(moment.pods.values()))
        if stage is self.suspended and not dig(job, "status", "conditions"):
            return {key: value for key, value in status.items() if key != "conditions"}
        for entry in status["conditions"]:
            entry["message"] = entry["message"].replace("{pods}", number)
        return status


_RESUMED: Final = ("Resuming", "Suspend is false")
_STARTED: Final = {"QuotaReserved": _RESUMED, "ResourcesDeployed": _RESUMED, "Unhealthy": _RESUMED}
_THERE: Final = {"Unhealthy": "False", "ResourcesDeployed": "True", "QuotaReserved": "True"}
_COURSE: Final = AppWrapperStages(
    suspended=Stage(
        fields={"phase": "Suspended"},
        conditions={"ResourcesDeployed": "False", "QuotaReserved": "False"},
        reason="Terminating",
        message="No resources deployed",
        words={"ResourcesDeployed": ("Terminating", "Resources successfully deleted")},
    ),
    starting=Stage(
        fields={"phase": "Running"},
        conditions={**_THERE, "PodsReady": "False"},
        reason=_RESUMED[0],
        message=_RESUMED[1],
    ),
    running=Stage(
        fields={"phase": "Running"},
        conditions={**_THERE, "PodsReady": "True"},
        reason="SufficientPodsReady",
        message="{pods} pods running; 0 pods succeeded",
        words=_STARTED,
    ),
    succeeded=Stage(
        fields={"phase": "Succeeded"},
        conditions={"QuotaReserved": "False", "ResourcesDeployed": "True"},
        reason="Succeeded",
        message="{pods} pods succeeded and no running, pending, or failed pods",
        by_reason=True,
    ),
    failed=Stage(
        fields={"phase": "Failed"},
        conditions={
            "DeletingResources": "False",
            "ResourcesDeployed": "False",
            "QuotaReserved": "False",
            "Unhealthy": "True",
        },
        reason="FoundFailedPods",
        words={
            "DeletingResources": ("DeletionComplete", ""),
            "ResourcesDeployed": ("Failed", "Resources deleted for failed AppWrapper"),
            "QuotaReserved": ("Failed", "No resources deployed"),
        },
    ),
)

KINDS: Final = (
    SandboxKind(
        resource=Resource(GVK("workload.codeflare.dev", "v1beta2", "AppWrapper"), "appwrappers"),
        integration="workload.codeflare.dev/appwrapper",
        operator="workload.codeflare.dev/appwrapper-controller",
        pods=WrappedPods(),
        course=_COURSE,
        spec={"components": [{"podSets": [{"replicas": 1, "path": _POD_TEMPLATE}], "template": _WRAPPED}]},
        columns=(("Status", ".status.phase"),),
        short_names=("aw",),
    ),
)
