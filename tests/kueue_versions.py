"""A cluster with an earlier Kueue: its definitions without the fields that came later, and its Deployment."""

from __future__ import annotations

from typing import Any, Final

from multikueue.core.model.names import Json
from multikueue.core.model.objects import clone
from multikueue.core.model.worker_kueue import CONSTRAINTS, GATES, Version
from multikueue.runtime.workers.kueue_check import CONTROLLER

MISSING: Final[dict[Version, tuple[str, ...]]] = {
    (0, 15): (GATES, ".status.preemptionGates", CONSTRAINTS),
    (0, 17): (),
    (0, 19): (),
}
"""What the definition of a Workload did not have yet."""


def definitions_of(version: Version, crds: list[Json]) -> list[Json]:
    """Kueue's definitions as a version had them, made of today's."""
    made: list[Json] = clone(crds)
    (workloads,) = (crd for crd in made if crd["spec"]["names"]["kind"] == "Workload")
    for served in workloads["spec"]["versions"]:
        for path in MISSING[version]:
            _cut(served["schema"]["openAPIV3Schema"], path)
    return made


def _cut(schema: Any, path: str) -> None:
    *parents, last = path.removeprefix(".").replace("[*]", ".[*]").split(".")
    for step in parents:
        schema = schema["items"] if step == "[*]" else schema["properties"][step]
    schema.pop("x-kubernetes-preserve-unknown-fields", None)  # the sandbox's: then nothing of it is kept
    schema.setdefault("properties", {}).pop(last, None)


def deployment_of(version: Version) -> Json:
    """The Deployment of Kueue's controller; it runs no pods."""
    labels = {"control-plane": "controller-manager"}
    image = f"registry.k8s.io/kueue/kueue:v{version[0]}.{version[1]}.3"
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "manager", "image": image}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": CONTROLLER.namespace, "name": CONTROLLER.name},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    }
