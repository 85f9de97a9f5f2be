"""Errors, access, and builtin kinds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conformance.client import Open, OpenNamespace
from tests.conformance.objects import config_map, job


async def test_i1_status_body(namespaced: OpenNamespace) -> None:
    """Status body {kind,apiVersion,status=Failure,reason,code,message}."""
    async with namespaced() as (cluster, ns):
        _, body = await cluster.get(cluster.widgets(ns, "q"))
        assert (body.get("kind"), body.get("apiVersion"), body.get("status"), body.get("code"), body.get("reason")) == (
            "Status",
            "v1",
            "Failure",
            404,
            "NotFound",
        )
        assert '"q" not found' in body["message"]


async def test_i2_method_not_allowed(namespaced: OpenNamespace) -> None:
    """Method not allowed is answered with 405."""
    async with namespaced() as (cluster, ns):
        code, body = await cluster.request("PUT", f"/api/v1/namespaces/{ns}/configmaps", config_map("a"))
        assert code == 405
        assert body["reason"] == "MethodNotAllowed"


async def test_i3_wrong_token(control_plane: Open) -> None:
    """A token that is nobody's is a 401."""
    async with control_plane() as cluster:
        code, body = await cluster.get(cluster.widgets("default"), headers={"Authorization": "Bearer wrong"})
        assert code == 401
        assert body["reason"] == "Unauthorized"


async def test_i4_access_review(control_plane: Open) -> None:
    """SelfSubjectAccessReview."""
    async with control_plane() as cluster:
        code, body = await cluster.post(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
            },
        )
        assert code == 201
        assert body["status"]["allowed"] is True


async def test_i5_lease_lock(namespaced: OpenNamespace) -> None:
    """Lease CRUD with optimistic lock (leader election)."""
    async with namespaced() as (cluster, ns):
        p = f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
        code, body = await cluster.post(
            p,
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": "l"},
                "spec": {"holderIdentity": "a"},
            },
        )
        assert code == 201
        d2 = json.loads(json.dumps(body))
        d2["spec"]["holderIdentity"] = "b"
        code, _ = await cluster.put(p + "/l", d2)
        assert code == 200
        code, _ = await cluster.put(p + "/l", body)
        assert code == 409


async def test_i6_job_defaults(namespaced: OpenNamespace) -> None:
    """Job: status subresource, defaulted fields present (parallelism=1, backoffLimit=6)."""
    async with namespaced() as (cluster, ns):
        p = f"/apis/batch/v1/namespaces/{ns}/jobs"
        code, body = await cluster.post(p, job("j"))
        assert code == 201
        assert body["spec"].get("parallelism") == 1
        assert body["spec"].get("backoffLimit") == 6
        code, body = await cluster.merge_patch(
            p + "/j/status", {"status": {"active": 1, "startTime": "2026-01-01T00:00:00Z"}}
        )
        assert code in (200, 422), code


async def test_i7_job_template_is_fixed_while_it_runs(namespaced: OpenNamespace) -> None:
    """Job immutability: template change while unsuspended is answered with 422."""
    async with namespaced() as (cluster, ns):
        p = f"/apis/batch/v1/namespaces/{ns}/jobs"
        j = job("j")
        j["spec"]["suspend"] = False
        code, _ = await cluster.post(p, j)
        assert code == 201
        code, _ = await cluster.merge_patch(
            p + "/j", {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "other"}]}}}}
        )
        assert code == 422


async def test_i8_typed_client(control_plane: Open) -> None:
    """Typed client round-trip: CoreV1Api/BatchV1Api models (create, list, patch strategic, delete)."""
    async with control_plane() as cluster:
        from kubernetes_asyncio import client

        ns = await cluster.namespace()
        async with cluster.python_client() as api:
            b: Any = client.BatchV1Api(api)
            j = await b.create_namespaced_job(ns, job("j"))
            assert j.metadata.uid
            assert j.metadata.creation_timestamp
            j2 = await b.patch_namespaced_job("j", ns, {"metadata": {"labels": {"a": "b"}}})
            assert j2.metadata.labels["a"] == "b"
            listed = await b.list_namespaced_job(ns)
            assert len(listed.items) == 1
            assert listed.metadata.resource_version
            j3 = await b.replace_namespaced_job("j", ns, j2)
            assert j3.metadata.name == "j"
            await b.delete_namespaced_job("j", ns, propagation_policy="Background")
            with pytest.raises(client.ApiException, match="404"):
                await b.read_namespaced_job("j", ns)


async def test_i9_event_creation(namespaced: OpenNamespace) -> None:
    """Event create, generateName + list."""
    async with namespaced() as (cluster, ns):
        code, _ = await cluster.post(
            f"/api/v1/namespaces/{ns}/events",
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"generateName": "e-"},
                "involvedObject": {"kind": "Pod", "name": "x", "namespace": ns},
                "reason": "R",
                "message": "m",
                "type": "Normal",
            },
        )
        assert code == 201
