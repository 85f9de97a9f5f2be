"""Replacing objects: optimistic locking, generation, status."""

from __future__ import annotations

import copy
import json

import anyio

from tests.conformance.client import OpenNamespace
from tests.conformance.objects import config_map


async def test_e1_replace(namespaced: OpenNamespace) -> None:
    """PUT with current resourceVersion is answered with 200 and new resourceVersion."""
    async with namespaced() as (cluster, ns):
        body = await cluster.make_widget(ns)
        rv = body["metadata"]["resourceVersion"]
        body["spec"]["size"] = 5
        code, d2 = await cluster.put(cluster.widgets(ns, "w"), body)
        assert code == 200
        assert d2["metadata"]["resourceVersion"] != rv
        assert d2["spec"]["size"] == 5


async def test_e2_stale_resource_version(namespaced: OpenNamespace) -> None:
    """PUT with stale resourceVersion is answered with 409 Conflict."""
    async with namespaced() as (cluster, ns):
        body = await cluster.make_widget(ns)
        d1 = json.loads(json.dumps(body))
        d1["spec"]["size"] = 2
        code, _ = await cluster.put(cluster.widgets(ns, "w"), d1)
        assert code == 200
        body["spec"]["size"] = 4
        code, e = await cluster.put(cluster.widgets(ns, "w"), body)
        assert code == 409
        assert e["reason"] == "Conflict"


async def test_e3_missing_resource_version(namespaced: OpenNamespace) -> None:
    """PUT without resourceVersion: CR is answered with 422; ConfigMap is answered with 200 (unconditional)."""
    async with namespaced() as (cluster, ns):
        body = await cluster.make_widget(ns)
        body["metadata"].pop("resourceVersion")
        code, _ = await cluster.put(cluster.widgets(ns, "w"), body)
        assert code == 422
        p = f"/api/v1/namespaces/{ns}/configmaps"
        code, _ = await cluster.post(p, config_map("c"))
        assert code == 201
        code, _ = await cluster.put(p + "/c", config_map("c", {"a": "b"}))
        assert code == 200


async def test_e4_no_op(namespaced: OpenNamespace) -> None:
    """No-op PUT keeps resourceVersion."""
    async with namespaced() as (cluster, ns):
        body = await cluster.make_widget(ns)
        _, d2 = await cluster.put(cluster.widgets(ns, "w"), body)
        assert d2["metadata"]["resourceVersion"] == body["metadata"]["resourceVersion"]


async def test_e5_generation(namespaced: OpenNamespace) -> None:
    """Generation: +1 on spec change, unchanged on metadata/status change."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns)
        _, body = await cluster.merge_patch(cluster.widgets(ns, "w"), {"spec": {"size": 2}})
        assert body["metadata"].get("generation") == 2
        _, body = await cluster.merge_patch(cluster.widgets(ns, "w"), {"metadata": {"labels": {"a": "b"}}})
        assert body["metadata"]["generation"] == 2
        _, body = await cluster.merge_patch(cluster.widgets(ns, "w", "status"), {"status": {"phase": "x"}})
        assert body["metadata"]["generation"] == 2


async def test_e6_status_needs_its_subresource(namespaced: OpenNamespace) -> None:
    """PUT to main resource cannot change .status."""
    async with namespaced() as (cluster, ns):
        body = await cluster.make_widget(ns)
        body["status"] = {"phase": "Z"}
        body["spec"]["size"] = 7
        code, d2 = await cluster.put(cluster.widgets(ns, "w"), body)
        assert code == 200
        assert "status" not in d2


async def test_e7_status_subresource_changes_only_status(namespaced: OpenNamespace) -> None:
    """PUT /status changes only status (spec, labels kept)."""
    async with namespaced() as (cluster, ns):
        body = await cluster.make_widget(ns)
        body["status"] = {"phase": "Z"}
        body["spec"]["size"] = 7
        body["metadata"]["labels"] = {"q": "w"}
        code, d2 = await cluster.put(cluster.widgets(ns, "w", "status"), body)
        assert code == 200
        assert d2["status"] == {"phase": "Z"}
        assert d2["spec"]["size"] == 1
        assert "labels" not in d2["metadata"]


async def test_e8_other_uid(namespaced: OpenNamespace) -> None:
    """PUT with other uid is answered with 409."""
    async with namespaced() as (cluster, ns):
        body = await cluster.make_widget(ns)
        body["metadata"]["uid"] = "aaaaaaaa-0000-0000-0000-000000000000"
        body["spec"]["size"] = 3
        code, _ = await cluster.put(cluster.widgets(ns, "w"), body)
        assert code == 409


async def test_e9_missing_object_or_other_name(namespaced: OpenNamespace) -> None:
    """PUT missing object is answered with 404; name mismatch is answered with 400."""
    async with namespaced() as (cluster, ns):
        body = await cluster.make_widget(ns)
        code, _ = await cluster.put(
            cluster.widgets(ns, "other"), {**body, "metadata": {**body["metadata"], "name": "other"}}
        )
        assert code == 404, "missing"
        code, _ = await cluster.put(cluster.widgets(ns, "w"), {**body, "metadata": {**body["metadata"], "name": "q"}})
        assert code == 400


async def test_e10_system_metadata_is_kept(namespaced: OpenNamespace) -> None:
    """Immutable metadata kept: creationTimestamp, uid, deletionTimestamp."""
    async with namespaced() as (cluster, ns):
        body = await cluster.make_widget(ns)
        o = json.loads(json.dumps(body))
        o["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z"
        o["spec"]["size"] = 9
        code, _ = await cluster.put(cluster.widgets(ns, "w"), o)
        assert code in (200, 422), code
        code, d3 = await cluster.get(cluster.widgets(ns, "w"))
        assert d3["metadata"]["creationTimestamp"] == body["metadata"]["creationTimestamp"]


async def test_e11_one_of_many_writers_wins(namespaced: OpenNamespace) -> None:
    """Of 20 concurrent PUTs from one resourceVersion exactly one wins."""
    async with namespaced() as (cluster, ns):
        original = await cluster.make_widget(ns)
        codes = []

        async def write(number: int) -> None:
            changed = copy.deepcopy(original)
            changed["metadata"]["labels"] = {"i": str(number)}
            code, _ = await cluster.put(cluster.widgets(ns, "w"), changed)
            codes.append(code)

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(write, number)
        assert sorted(codes) == [200] + [409] * 19
