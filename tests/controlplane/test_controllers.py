"""With a controller manager, jobs and owners behave as they do in a cluster; only nodes are missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.controlplane import crds, pods
from tests.controlplane.interface import Cluster, ClusterFactory, together
from tests.controlplane.polling import poll_until

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

_JOBS = "/apis/batch/v1/namespaces/default/jobs"
_MAPS = "/api/v1/namespaces/default/configmaps"
_SELECTOR = "batch.kubernetes.io/job-name=work"
_CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: owners.tests.example}
spec:
  group: tests.example
  names: {kind: Owner, plural: owners}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
"""


def _job(**spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "none"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"parallelism": 2, "completions": 2, "template": template, **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work"}, "spec": spec}


async def _until_pods(plane: Cluster, count: int) -> None:
    async def there() -> bool:
        return len(await pods.list_pods(plane.admin, "default", _SELECTOR)) == count

    await poll_until(there, seconds=30, otherwise=f"there were never {count} pods")


async def _until_condition(plane: Cluster, kind: str) -> None:
    async def holds() -> bool:
        conditions = (await plane.admin.get(f"{_JOBS}/work"))["status"].get("conditions", [])
        return any(condition["type"] == kind and condition["status"] == "True" for condition in conditions)

    await poll_until(holds, seconds=30, otherwise=f"the Job never was {kind}")


async def test_a_job_makes_pods_and_completes_when_they_succeed(clusters: ClusterFactory) -> None:
    async with clusters("jobs", controller_manager=True) as plane:
        await plane.admin.create(_job())
        await _until_pods(plane, 2)
        assert await pods.set_phase(plane.admin, "default", _SELECTOR, "Running") == 2

        async def active() -> bool:
            return bool((await plane.admin.get(f"{_JOBS}/work"))["status"].get("ready") == 2)

        await poll_until(active, seconds=30, otherwise="the Job's pods never were ready")
        await pods.set_phase(plane.admin, "default", _SELECTOR, "Succeeded")
        await _until_condition(plane, "Complete")
        await plane.admin.delete(f"{_JOBS}/work", propagationPolicy="Background")
        await _until_pods(plane, 0)


async def test_a_job_managed_by_another_controller_or_suspended_makes_no_pods(clusters: ClusterFactory) -> None:
    async with clusters("managed", controller_manager=True) as plane:
        elsewhere = _job(managedBy="kueue.x-k8s.io/multikueue")
        elsewhere["metadata"]["name"] = "elsewhere"
        await plane.admin.create(elsewhere)
        await plane.admin.create(_job(suspend=True))
        await _until_condition(plane, "Suspended")
        assert await pods.list_pods(plane.admin, "default", "") == []
        assert (await plane.admin.get(f"{_JOBS}/elsewhere")).get("status", {}) == {}
        await plane.admin.merge_patch(f"{_JOBS}/work", {"spec": {"suspend": False}})
        await _until_pods(plane, 2)


async def test_dependents_of_a_deleted_custom_owner_are_collected(clusters: ClusterFactory, tmp_path: Path) -> None:
    (tmp_path / "owner.yaml").write_text(_CRD)
    async with clusters("collected", controller_manager=True, crds=crds.read(tmp_path)) as plane:
        owner = await plane.admin.create(
            {"apiVersion": "tests.example/v1", "kind": "Owner", "metadata": {"name": "owner"}}
        )
        reference = {
            "apiVersion": "tests.example/v1",
            "kind": "Owner",
            "name": "owner",
            "uid": owner["metadata"]["uid"],
        }
        metadata = {"name": "dependent", "ownerReferences": [reference]}
        await plane.admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        await plane.admin.delete("/apis/tests.example/v1/namespaces/default/owners/owner")

        async def gone() -> bool:
            return (await plane.admin.send("GET", f"{_MAPS}/dependent")).status == 404

        await poll_until(gone, seconds=30, otherwise="the dependent was not collected")


async def test_a_namespace_goes_away_with_what_is_in_it_and_controllers_survive_a_restart(
    clusters: ClusterFactory,
) -> None:
    async with clusters("namespaces", controller_manager=True) as plane:
        await plane.restart_apiserver()
        await plane.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        metadata = {"name": "inside", "namespace": "team"}
        await plane.admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        await plane.admin.delete("/api/v1/namespaces/team")

        async def gone() -> bool:
            return (await plane.admin.send("GET", "/api/v1/namespaces/team")).status == 404

        await poll_until(gone, seconds=60, otherwise="the namespace is still there")


async def test_several_clusters_start_together_and_know_nothing_of_each_other(clusters: ClusterFactory) -> None:
    manager, worker = clusters("manager"), clusters("worker")
    async with together(manager, worker):
        await manager.admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "here"}})
        assert (await worker.admin.send("GET", f"{_MAPS}/here")).status == 404
        assert (await worker.admin.send("GET", "/version")).status == 200
        assert manager.token() != worker.token()
