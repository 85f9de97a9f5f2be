"""
A walk through Kueue's own kinds: 35 requests, valid and invalid, and the code each is answered with.

The codes are what a real API server answers on the CRDs of Kueue's main branch. The sandbox gives the same ones on
them, and on the CRDs it ships.
"""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from multikueue.core.model.names import Json
from tests.conformance.client import Answer, ConformanceClient, Open
from tests.conformance.kueue_crds import KUEUE, OWN, definitions
from tests.conformance.planes import REAL_MARKS

GROUP = "kueue.x-k8s.io"
CLUSTER = f"/apis/{GROUP}/v1beta2/"
NOW = "2026-01-01T00:00:00Z"


@attrs.frozen
class Step:
    """One request and the code it is answered with."""

    code: int
    method: str
    path: str
    body: Json | None = None
    manager: str = ""

    async def take(self, cluster: ConformanceClient) -> Answer:
        """Send it."""
        if self.method == "APPLY":
            return await cluster.apply(self.path, self.body or {}, self.manager, force=True)
        if self.method == "PATCH":
            return await cluster.merge_patch(self.path, self.body or {})
        return await cluster.request(self.method, self.path, self.body)


def obj(kind: str, name: str, spec: Json, **metadata: Any) -> Json:
    """A Kueue object."""
    return {
        "apiVersion": f"{GROUP}/v1beta2",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def pod_set(**fields: Any) -> Json:
    """One pod set with a template."""
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    containers = [{"name": "c", "image": "x", "resources": resources}]
    return {"name": "main", "template": {"spec": {"restartPolicy": "Never", "containers": containers}}, **fields}


def condition(kind: str, status: str) -> Json:
    """A condition."""
    return {"type": kind, "status": status, "reason": "R", "message": "m", "lastTransitionTime": NOW}


def queue(covered: list[str], **spec: Any) -> Json:
    """A ClusterQueue's spec with quota for CPUs."""
    flavor = {"name": "rf", "resources": [{"name": "cpu", "nominalQuota": 9}]}
    return {"resourceGroups": [{"coveredResources": covered, "flavors": [flavor]}], **spec}


def configuration() -> list[Step]:
    """Flavors, queues, clusters and checks."""
    kubeconfig = {"kubeConfig": {"location": "sec", "locationType": "Secret"}}
    check = {
        "controllerName": "kueue.x-k8s.io/multikueue",
        "parameters": {"apiGroup": GROUP, "kind": "MultiKueueConfig", "name": "mc"},
    }
    taint = {"nodeTaints": [{"key": "k", "effect": "Bogus"}]}
    return [
        Step(201, "POST", CLUSTER + "resourceflavors", obj("ResourceFlavor", "rf", {"nodeLabels": {"a": "b"}})),
        Step(422, "POST", CLUSTER + "resourceflavors", obj("ResourceFlavor", "rf2", taint)),
        Step(201, "POST", CLUSTER + "clusterqueues", obj("ClusterQueue", "cq", queue(["cpu"], namespaceSelector={}))),
        Step(422, "POST", CLUSTER + "clusterqueues", obj("ClusterQueue", "cq2", queue(["cpu", "memory"]))),
        Step(
            201,
            "POST",
            CLUSTER + "multikueueclusters",
            obj("MultiKueueCluster", "w1", {"clusterSource": kubeconfig}),
        ),
        Step(422, "POST", CLUSTER + "multikueueclusters", obj("MultiKueueCluster", "w2", {"clusterSource": {}})),
        Step(201, "POST", CLUSTER + "multikueueconfigs", obj("MultiKueueConfig", "mc", {"clusters": ["w1", "w2"]})),
        Step(422, "POST", CLUSTER + "multikueueconfigs", obj("MultiKueueConfig", "mc2", {"clusters": ["w1", "w1"]})),
        Step(201, "POST", CLUSTER + "admissionchecks", obj("AdmissionCheck", "ac", check)),
        Step(422, "PATCH", CLUSTER + "admissionchecks/ac", {"spec": {"controllerName": "other"}}),
        Step(
            200,
            "PATCH",
            CLUSTER + "admissionchecks/ac/status",
            {"status": {"conditions": [condition("Active", "True")]}},
        ),
        Step(
            422,
            "PATCH",
            CLUSTER + "admissionchecks/ac/status",
            {"status": {"conditions": [condition("Active", "maybe")]}},
        ),
    ]


def queueing(here: str) -> list[Step]:
    """A queue and workloads in it."""
    meta = {"finalizers": [f"{GROUP}/resource-in-use"], "labels": {f"{GROUP}/multikueue-origin": "m"}}

    def workload(name: str, spec: Json, **metadata: Any) -> Json:
        return obj("Workload", name, {"queueName": "lq", **spec}, **metadata)

    sets = {"podSets": [pod_set(count=3)]}
    return [
        Step(201, "POST", here + "localqueues", obj("LocalQueue", "lq", {"clusterQueue": "cq"})),
        Step(422, "PATCH", here + "localqueues/lq", {"spec": {"clusterQueue": "zz"}}),
        Step(201, "POST", here + "workloads", workload("wl", sets, **meta)),
        Step(422, "POST", here + "workloads", workload("wl2", {"podSets": [pod_set(count=3, minCount=5)]})),
        Step(
            422,
            "POST",
            here + "workloads",
            workload("wl3", {"queueName": "Bad Name!", "podSets": [pod_set(count=-1)]}),
        ),
        Step(422, "POST", here + "workloads", workload("wl4", {"podSets": []})),
    ]


def admission(here: str) -> list[Step]:
    """A workload's status, as Kueue and MultiKueue write it, and what may not change after that."""
    head = {"apiVersion": f"{GROUP}/v1beta2", "kind": "Workload", "metadata": {"name": "wl"}}
    usage = {"flavors": {"cpu": "rf"}, "resourceUsage": {"cpu": "3"}}
    admitted = {
        "admission": {"clusterQueue": "cq", "podSetAssignments": [{"name": "main", "count": 3, **usage}]},
        "conditions": [condition("QuotaReserved", "True")],
    }
    pending = {"name": "ac", "state": "Pending", "message": "", "lastTransitionTime": NOW, "podSetUpdates": []}
    nominated = {"admissionChecks": [pending], "nominatedClusterNames": ["w1", "w2"]}
    status, spec = here + "workloads/wl/status", here + "workloads/wl"
    chosen = {"clusterName": "w1", "nominatedClusterNames": None}
    return [
        Step(200, "APPLY", status, {**head, "status": admitted}, "kueue-admission"),
        Step(200, "APPLY", status, {**head, "status": nominated}, "kueue-multikueue"),
        Step(200, "PATCH", status, {"status": chosen}),
        Step(422, "PATCH", status, {"status": {"clusterName": "w2"}}),
        Step(422, "PATCH", spec, {"spec": {"queueName": "other"}}),
        Step(200, "PATCH", spec, {"spec": {"podSets": [pod_set(count=5)]}}),
        Step(200, "PATCH", spec, {"spec": {"active": False}}),
    ]


def ending(here: str, namespace: str) -> list[Step]:
    """Reading it all once more, and deleting it."""
    other = f"/apis/{GROUP}/v1beta1/namespaces/{namespace}/workloads/wl"
    selected = here + f"workloads?labelSelector={GROUP}/multikueue-origin%3Dm"
    objects = (
        "admissionchecks/ac",
        "multikueueconfigs/mc",
        "multikueueclusters/w1",
        "clusterqueues/cq",
        "resourceflavors/rf",
    )
    return [
        Step(404, "GET", other),
        Step(200, "GET", selected),
        Step(200, "DELETE", here + "workloads/wl"),
        Step(200, "PATCH", here + "workloads/wl", {"metadata": {"finalizers": None}}),
        Step(404, "GET", here + "workloads/wl"),
        *(Step(200, "DELETE", CLUSTER + name) for name in objects),
    ]


WALKS = [("real", KUEUE), ("sandbox", KUEUE), ("sandbox", OWN)]


@pytest.mark.parametrize(
    ("control_plane", "crds"),
    [pytest.param(plane, crds, marks=REAL_MARKS if plane == "real" else []) for plane, crds in WALKS],
    indirect=["control_plane"],
)
async def test_kueue_walk(control_plane: Open, crds: str) -> None:
    """Kueue's objects are accepted, refused, defaulted and deleted as a real API server does it."""
    async with control_plane() as cluster:
        for manifest in definitions(crds):
            await cluster.install(manifest)
        namespace = await cluster.namespace()
        here = f"{CLUSTER}namespaces/{namespace}/"
        steps = [*configuration(), *queueing(here), *admission(here), *ending(here, namespace)]
        assert len(steps) == 35
        for step in steps:
            code, body = await step.take(cluster)
            assert code == step.code, (step.method, step.path, step.body, body)
