"""What a control plane says about itself."""

from __future__ import annotations

from tests.conformance.client import Open
from tests.conformance.objects import GROUP


async def test_a1_version(control_plane: Open) -> None:
    """GET /version."""
    async with control_plane() as cluster:
        code, body = await cluster.get("/version")
        assert code == 200
        assert "gitVersion" in body


async def test_a2_group_lists(control_plane: Open) -> None:
    """/api, /apis shapes (kind APIVersions / APIGroupList)."""
    async with control_plane() as cluster:
        _, body = await cluster.get("/api")
        assert body.get("kind") == "APIVersions"
        _, body = await cluster.get("/apis")
        assert body.get("kind") == "APIGroupList"
        assert any(g["name"] == GROUP for g in body["groups"]), "CRD group listed"


async def test_a3_custom_resources_are_listed(control_plane: Open) -> None:
    """APIResourceList lists widgets + widgets/status with verbs."""
    async with control_plane() as cluster:
        code, body = await cluster.get(f"/apis/{GROUP}/v1")
        assert code == 200
        assert body.get("kind") == "APIResourceList"
        assert body.get("groupVersion") == f"{GROUP}/v1"
        r = {x["name"]: x for x in body["resources"]}
        assert "widgets" in r, str(list(r))
        assert "widgets/status" in r, str(list(r))
        assert r["widgets"]["namespaced"] is True
        assert r["widgets"]["kind"] == "Widget"
        assert {"get", "list", "watch", "create", "update", "patch", "delete"} <= set(r["widgets"]["verbs"])


async def test_a4_core_resources_are_listed(control_plane: Open) -> None:
    """Core /api/v1 resource list has pods, configmaps, namespaces; groupVersion "v1"."""
    async with control_plane() as cluster:
        _, body = await cluster.get("/api/v1")
        assert body.get("groupVersion") == "v1"
        n = {x["name"] for x in body["resources"]}
        assert {"pods", "configmaps", "namespaces", "secrets"} <= n, str(n)


async def test_a5_aggregated_discovery(control_plane: Open) -> None:
    """Aggregated discovery (apidiscovery.k8s.io/v2)."""
    async with control_plane() as cluster:
        _, body = await cluster.get(
            "/apis",
            headers={"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"},
        )
        assert body.get("kind") == "APIGroupDiscoveryList"


async def test_a6_unknown_resource(control_plane: Open) -> None:
    """Unknown resource 404."""
    async with control_plane() as cluster:
        code, _ = await cluster.get(f"/apis/{GROUP}/v1/namespaces/x/nosuch")
        assert code == 404
        code, _ = await cluster.post(
            f"/apis/{GROUP}/v1/namespaces/default/nosuch",
            {"apiVersion": f"{GROUP}/v1", "kind": "X", "metadata": {"name": "x"}},
        )
        assert code == 404, "create of unknown resource"


async def test_a7_openapi_version_3(control_plane: Open) -> None:
    """OpenAPI v3 or v2 document served."""
    async with control_plane() as cluster:
        code, body = await cluster.get("/openapi/v3")
        assert code == 200
        assert "paths" in body


async def test_a8_health_endpoints(control_plane: Open) -> None:
    """/healthz /readyz /livez."""
    async with control_plane() as cluster:
        for p in ("/healthz", "/readyz", "/livez"):
            code, _ = await cluster.get(p)
            assert code == 200, p


async def test_a9_dynamic_client(control_plane: Open) -> None:
    """Kubernetes_asyncio DynamicClient discovers Widget and lists it."""
    async with control_plane() as cluster:
        from kubernetes_asyncio import dynamic

        ns = await cluster.namespace()
        await cluster.make_widget(ns, "a")
        async with cluster.python_client() as api:
            dc = await dynamic.DynamicClient(api)
            r = await dc.resources.get(api_version=f"{GROUP}/v1", kind="Widget")
            lst = await r.get(namespace=ns)
            assert [i.metadata.name for i in lst.items] == ["a"]
