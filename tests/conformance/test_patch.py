"""Patches of all four kinds."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.core.model.names import Json
from tests.conformance.client import Open, OpenNamespace
from tests.conformance.objects import GROUP, pod, widget

OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}


async def test_f1_merge_patch(namespaced: OpenNamespace) -> None:
    """Merge patch: nested merge, null deletes, list replaced."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns, spec={"size": 1, "mode": "a", "plain": ["x"], "labels": {"a": "1", "b": "2"}})
        code, body = await cluster.merge_patch(
            cluster.widgets(ns, "w"), {"spec": {"mode": None, "plain": ["y", "z"], "labels": {"a": None, "c": "3"}}}
        )
        assert code == 200
        assert body["spec"] == {"size": 1, "plain": ["y", "z"], "labels": {"b": "2", "c": "3"}}


async def test_f2_json_patch(namespaced: OpenNamespace) -> None:
    """JSON patch add/replace/remove/test; failed test is answered with 422."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns, spec={"size": 1, "plain": ["x"]})
        code, body = await cluster.json_patch(
            cluster.widgets(ns, "w"),
            [
                {"op": "test", "path": "/spec/size", "value": 1},
                {"op": "replace", "path": "/spec/size", "value": 4},
                {"op": "add", "path": "/spec/plain/-", "value": "y"},
                {"op": "remove", "path": "/spec/plain/0"},
            ],
        )
        assert code == 200
        assert body["spec"] == {"size": 4, "plain": ["y"]}
        code, body = await cluster.json_patch(
            cluster.widgets(ns, "w"), [{"op": "test", "path": "/spec/size", "value": 1}]
        )
        assert code == 422


async def test_f3_strategic_merge_on_builtin_kinds(namespaced: OpenNamespace) -> None:
    """Strategic merge on Pod: containers merged by name."""
    async with namespaced() as (cluster, ns):
        p = f"/api/v1/namespaces/{ns}/pods"
        code, _ = await cluster.post(p, pod("p"))
        assert code == 201
        code, body = await cluster.strategic_patch(p + "/p", {"spec": {"containers": [{"name": "b", "image": "z"}]}})
        assert code == 200
        assert {c["name"]: c["image"] for c in body["spec"]["containers"]} == {"a": "x", "b": "z"}


async def test_f4_no_strategic_merge_on_custom_kinds(namespaced: OpenNamespace) -> None:
    """Strategic merge on CR is answered with 415."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns)
        code, _ = await cluster.strategic_patch(cluster.widgets(ns, "w"), {"spec": {"size": 2}})
        assert code == 415


async def test_f5_patch_with_stale_resource_version(namespaced: OpenNamespace) -> None:
    """Patch carrying stale metadata.resourceVersion is answered with 409."""
    async with namespaced() as (cluster, ns):
        body = await cluster.make_widget(ns)
        await cluster.merge_patch(cluster.widgets(ns, "w"), {"spec": {"size": 2}})
        code, _ = await cluster.merge_patch(
            cluster.widgets(ns, "w"),
            {"metadata": {"resourceVersion": body["metadata"]["resourceVersion"]}, "spec": {"size": 3}},
        )
        assert code == 409


async def test_f6_patch_of_status(namespaced: OpenNamespace) -> None:
    """Merge patch /status changes only status; main patch cannot change status."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns)
        code, body = await cluster.merge_patch(
            cluster.widgets(ns, "w", "status"), {"spec": {"size": 9}, "status": {"phase": "P"}}
        )
        assert code == 200
        assert body["spec"]["size"] == 1
        assert body["status"]["phase"] == "P"
        code, body = await cluster.merge_patch(cluster.widgets(ns, "w"), {"status": {"phase": "Q"}})
        assert body["status"]["phase"] == "P"


async def test_f7_unsupported_patch_format(namespaced: OpenNamespace) -> None:
    """Unsupported patch content type is answered with 415."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns)
        code, _ = await cluster.request(
            "PATCH", cluster.widgets(ns, "w"), {"spec": {"size": 2}}, content_type="application/json"
        )
        assert code == 415


async def test_f8_patch_missing(namespaced: OpenNamespace) -> None:
    """Patch missing object is answered with 404."""
    async with namespaced() as (cluster, ns):
        code, body = await cluster.merge_patch(cluster.widgets(ns, "zz"), {"spec": {"size": 2}})
        assert code == 404
        assert body["reason"] == "NotFound"


async def test_f9_no_op_patch(namespaced: OpenNamespace) -> None:
    """A patch that changes nothing keeps the resourceVersion and emits no watch event."""
    async with namespaced() as (cluster, ns):
        before = await cluster.make_widget(ns)
        revision = before["metadata"]["resourceVersion"]
        async with cluster.watch(cluster.widgets(ns), resourceVersion=revision) as stream:
            _, after = await cluster.merge_patch(cluster.widgets(ns, "w"), {"spec": {"size": 1}})
            assert after["metadata"]["resourceVersion"] == revision
            await cluster.make_widget(ns, "next")
            event = await stream.next()
            assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "next")


async def test_f10_apply_creates(namespaced: OpenNamespace) -> None:
    """SSA: apply creates (201) and records managedFields Apply."""
    async with namespaced() as (cluster, ns):
        code, body = await cluster.apply(cluster.widgets(ns, "a"), widget("a", {"size": 2}))
        assert code == 201
        mf = body["metadata"]["managedFields"]
        assert any(m["manager"] == "m1" and m["operation"] == "Apply" and ("f:spec" in m["fieldsV1"]) for m in mf)


async def test_f11_apply_conflict_and_force(namespaced: OpenNamespace) -> None:
    """SSA: conflict 409 with FieldManagerConflict causes; force takes over."""
    async with namespaced() as (cluster, ns):
        await cluster.apply(cluster.widgets(ns, "a"), widget("a", {"size": 2}), "m1")
        code, body = await cluster.apply(cluster.widgets(ns, "a"), widget("a", {"size": 3}), "m2")
        assert code == 409
        assert body["details"]["causes"][0]["reason"] == "FieldManagerConflict"
        code, body = await cluster.apply(cluster.widgets(ns, "a"), widget("a", {"size": 3}), "m2", force=True)
        assert code == 200
        assert body["spec"]["size"] == 3


async def test_f12_apply_removes_dropped_fields(namespaced: OpenNamespace) -> None:
    """SSA: field dropped from applied config is removed."""
    async with namespaced() as (cluster, ns):
        await cluster.apply(cluster.widgets(ns, "a"), widget("a", {"size": 2, "mode": "a"}))
        code, body = await cluster.apply(cluster.widgets(ns, "a"), widget("a", {"size": 2}))
        assert code == 200
        assert "mode" not in body["spec"]


async def test_f13_apply_merges_lists_by_key(namespaced: OpenNamespace) -> None:
    """SSA: listType=map merged by key across managers (status.conditions)."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns, "a")
        base = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "a"}}
        code, body = await cluster.apply(
            cluster.widgets(ns, "a", "status"),
            {**base, "status": {"conditions": [{"type": "A", "status": "True"}]}},
            "m1",
            True,
        )
        assert code == 200
        code, body = await cluster.apply(
            cluster.widgets(ns, "a", "status"),
            {**base, "status": {"conditions": [{"type": "B", "status": "False"}]}},
            "m2",
            True,
        )
        assert code == 200
        assert sorted(c["type"] for c in body["status"]["conditions"]) == ["A", "B"]
        code, body = await cluster.apply(
            cluster.widgets(ns, "a", "status"), {**base, "status": {"conditions": []}}, "m1", True
        )
        assert sorted(c["type"] for c in body["status"].get("conditions", [])) == ["B"]


async def test_f14_apply_needs_a_manager(namespaced: OpenNamespace) -> None:
    """SSA: without fieldManager is answered with 400/422."""
    async with namespaced() as (cluster, ns):
        code, _ = await cluster.request(
            "PATCH", cluster.widgets(ns, "a"), widget("a"), content_type="application/apply-patch+yaml"
        )
        assert code in (400, 422), code


async def test_f15_managers_of_plain_writes(namespaced: OpenNamespace) -> None:
    """ManagedFields recorded for POST/PUT/PATCH (operation Update)."""
    async with namespaced() as (cluster, ns):
        body = await cluster.make_widget(ns, params={"fieldManager": "poster"})
        assert any(
            m["manager"] == "poster" and m["operation"] == "Update" for m in body["metadata"].get("managedFields", [])
        )


async def test_f16_apply_merges_sets_and_reads_yaml(namespaced: OpenNamespace) -> None:
    """SSA: listType=set union; YAML body accepted."""
    async with namespaced() as (cluster, ns):
        await cluster.apply(cluster.widgets(ns, "a"), widget("a", {"tags": ["x"]}), "m1")
        raw = f"apiVersion: {GROUP}/v1\nkind: Widget\nmetadata:\n  name: a\nspec:\n  tags: [yy]\n"
        code, body = await cluster.request(
            "PATCH",
            cluster.widgets(ns, "a"),
            raw=raw,
            content_type="application/apply-patch+yaml",
            params={"fieldManager": "m2"},
        )
        assert code == 200
        assert sorted(body["spec"]["tags"]) == ["x", "yy"]


async def test_f17_apply_no_op(namespaced: OpenNamespace) -> None:
    """SSA no-op re-apply keeps resourceVersion."""
    async with namespaced() as (cluster, ns):
        code, a = await cluster.apply(cluster.widgets(ns, "a"), widget("a", {"size": 2}))
        code, b = await cluster.apply(cluster.widgets(ns, "a"), widget("a", {"size": 2}))
        assert code == 200
        assert a["metadata"]["resourceVersion"] == b["metadata"]["resourceVersion"]


async def test_f18_python_client_patches(control_plane: Open) -> None:
    """Kubernetes_asyncio: patch_namespaced_custom_object(_status) w/ _content_type merge + apply."""
    async with control_plane() as cluster:
        from kubernetes_asyncio import client

        ns = await cluster.namespace()
        await cluster.make_widget(ns, "a")
        async with cluster.python_client() as api:
            co: Any = client.CustomObjectsApi(api)
            body = await co.patch_namespaced_custom_object(
                GROUP, "v1", ns, "widgets", "a", {"spec": {"size": 2}}, _content_type="application/merge-patch+json"
            )
            assert body["spec"]["size"] == 2
            body = await co.patch_namespaced_custom_object_status(
                GROUP,
                "v1",
                ns,
                "widgets",
                "a",
                {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "a"}, "status": {"phase": "Ok"}},
                field_manager="fm",
                force=True,
                _content_type="application/apply-patch+yaml",
            )
            assert body["status"]["phase"] == "Ok"


async def test_f19_apply_with_stale_resource_version(namespaced: OpenNamespace) -> None:
    """SSA with stale resourceVersion in body is answered with 409."""
    async with namespaced() as (cluster, ns):
        body = await cluster.make_widget(ns, "a")
        await cluster.merge_patch(cluster.widgets(ns, "a"), {"spec": {"size": 2}})
        o = widget("a", {"mode": "a"}, meta={"resourceVersion": body["metadata"]["resourceVersion"]})
        code, _ = await cluster.apply(cluster.widgets(ns, "a"), o, force=True)
        assert code == 409


async def test_f21_other_uid(namespaced: OpenNamespace) -> None:
    """A patch with another object's uid is 422 and names the field, or 409 if it is stale, too. A status ignores it."""
    other: Json = {"uid": "aaaaaaaa-0000-0000-0000-000000000000"}
    async with namespaced() as (cluster, ns):
        made = await cluster.make_widget(ns)
        plain = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w"}}
        await cluster.post(f"/api/v1/namespaces/{ns}/configmaps", plain)
        for path in (cluster.widgets(ns, "w"), f"/api/v1/namespaces/{ns}/configmaps/w"):
            code, body = await cluster.merge_patch(path, {"metadata": {**other, "labels": {"a": "b"}}})
            assert (code, body["reason"]) == (422, "Invalid")
            assert "metadata.uid" in [cause["field"] for cause in body["details"]["causes"]]
            stale = {**other, "resourceVersion": "1", "labels": {"a": "b"}}
            assert (await cluster.merge_patch(path, {"metadata": stale}))[0] == 409
        applied = widget("w", {"size": 3})
        applied["metadata"] |= other
        assert (await cluster.apply(cluster.widgets(ns, "w"), applied, force=True))[0] == 422
        status: Json = {"metadata": other, "status": {"phase": "Z"}}
        code, body = await cluster.merge_patch(cluster.widgets(ns, "w", "status"), status)
        assert (code, body["status"], body["metadata"]["uid"]) == (200, {"phase": "Z"}, made["metadata"]["uid"])


async def test_f22_json_patches_as_go_reads_them(namespaced: OpenNamespace) -> None:
    """What is absent is null: a test against null holds, and replace and copy go on from there."""
    async with namespaced() as (cluster, ns):
        path = f"/api/v1/namespaces/{ns}/configmaps"
        await cluster.post(path, {"metadata": {"name": "w"}})
        nothing_there: Json = {"op": "test", "path": "/metadata/annotations", "value": None}
        code, _ = await cluster.json_patch(
            f"{path}/w", [nothing_there, {"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}]
        )
        assert code == 200
        assert (await cluster.json_patch(f"{path}/w", [nothing_there]))[0] == 422
        code, body = await cluster.json_patch(f"{path}/w", [{"op": "replace", "path": "/data", "value": {"x": "y"}}])
        assert (code, body["data"]) == (200, {"x": "y"})
        code, _ = await cluster.json_patch(
            f"{path}/w", [{"op": "copy", "from": "/binaryData", "path": "/metadata/labels"}]
        )
        assert code == 200
        assert (await cluster.json_patch(f"{path}/w", [{"op": "remove", "path": "/metadata/labels"}]))[0] == 422


async def test_f23_json_patches_count_from_the_end(namespaced: OpenNamespace) -> None:
    async with namespaced() as (cluster, ns):
        path, listed = f"/api/v1/namespaces/{ns}/configmaps", "/metadata/finalizers"
        await cluster.post(path, {"metadata": {"name": "w", "finalizers": ["a.b/1", "a.b/2"]}})
        steps: list[Json] = [
            {"op": "add", "path": f"{listed}/-1", "value": "a.b/4"},
            {"op": "add", "path": f"{listed}/-2", "value": "a.b/3"},
            {"op": "test", "path": f"{listed}/-2", "value": "a.b/3"},
            {"op": "remove", "path": f"{listed}/-4"},
            {"op": "replace", "path": f"{listed}/-1", "value": "a.b/5"},
        ]
        code, body = await cluster.json_patch(f"{path}/w", steps)
        assert (code, body["metadata"]["finalizers"]) == (200, ["a.b/2", "a.b/3", "a.b/5"])
        for beyond in ({"op": "remove", "path": f"{listed}/-4"}, {"op": "add", "path": f"{listed}/-5", "value": "a"}):
            assert (await cluster.json_patch(f"{path}/w", [beyond]))[0] == 422
        await cluster.json_patch(f"{path}/w", [{"op": "remove", "path": listed}])


async def test_f24_json_patches_that_leave_something_out(namespaced: OpenNamespace) -> None:
    """A value that is left out is null; what stands before the first slash of a path does not count."""
    async with namespaced() as (cluster, ns):
        path, listed = f"/api/v1/namespaces/{ns}/configmaps", "/metadata/finalizers"
        made = {"metadata": {"name": "w", "finalizers": ["a.b/1", "a.b/2"]}, "data": {"k": "v", "l": "w"}}
        await cluster.post(path, made)
        for step, data in (
            ({"op": "add", "path": "/data/z"}, {"k": "v", "l": "w", "z": ""}),
            ({"op": "test", "path": "/data/absent"}, {"k": "v", "l": "w", "z": ""}),
            ({"op": "replace", "path": "/data/k"}, {"k": "", "l": "w", "z": ""}),
            ({"op": "add", "path": "of/data/z", "value": "1"}, {"k": "", "l": "w", "z": "1"}),
            ({"op": "copy", "from": "of/data/l", "path": "/data/z"}, {"k": "", "l": "w", "z": "w"}),
        ):
            code, body = await cluster.json_patch(f"{path}/w", [step])
            assert (code, body.get("data")) == (200, data), step
        for index, value in (("01", "a.b/3"), ("+1", "a.b/4")):
            replaced = {"op": "replace", "path": f"{listed}/{index}", "value": value}
            code, body = await cluster.json_patch(f"{path}/w", [replaced])
            assert (code, body["metadata"].get("finalizers")) == (200, ["a.b/1", value]), index
        owned = [{"op": "add", "path": "/metadata/ownerReferences", "value": [OWNER, {**OWNER, "uid": "v"}]}]
        named = {"op": "replace", "path": "/metadata/ownerReferences/-1/name", "value": "q"}
        code, body = await cluster.json_patch(f"{path}/w", [*owned, named])
        assert (code, [owner["name"] for owner in body["metadata"]["ownerReferences"]]) == (200, ["p", "q"])
        await cluster.json_patch(f"{path}/w", [{"op": "remove", "path": listed}])


@pytest.mark.parametrize(
    ("patch", "code"),
    [
        ([None], 422),
        ([{}], 422),
        ([{"op": "add", "value": "1"}], 422),
        ([{"op": "add", "path": None, "value": "1"}], 422),
        ([{"op": "add", "path": "data", "value": "1"}], 422),
        ([{"op": "copy", "path": "/data/z"}], 422),
        ([{"op": "move", "path": "/data/z"}], 422),
        ([{"op": "merge", "path": "/data/z"}], 422),
        ([{"op": "add", "path": "/data/z/x/y", "value": "1"}], 422),
        ([{"op": "add", "path": "/data/k/x", "value": "1"}], 422),
        ([{"op": "replace", "path": "", "value": None}], 422),
        ([{"op": "replace", "path": "", "value": "x"}], 422),
        ([{"op": "replace", "path": "", "value": []}], 422),
        ([{"op": "add", "path": "", "value": {"metadata": {"name": "w"}}}], 422),
        ([{"op": "copy", "from": "/metadata/labels", "path": ""}], 422),
        ([{"op": "move", "from": "/data", "path": ""}], 422),
        ([{"op": "copy", "from": "", "path": "/data/z"}], 422),
        ([{"op": "add", "path": 5, "value": "1"}], 400),
        ([{"op": "copy", "from": [], "path": "/data/z"}], 400),
        ([{"op": 1, "path": "/data/z"}], 400),
        (["add"], 400),
        ([[]], 400),
        ({"op": "add"}, 400),
    ],
    ids=str,
)
async def test_f25_json_patches_that_are_none(namespaced: OpenNamespace, patch: Any, code: int) -> None:
    """A step of another form is no patch (400); one that cannot be done is 422."""
    async with namespaced() as (cluster, ns):
        path = f"/api/v1/namespaces/{ns}/configmaps"
        await cluster.post(path, {"metadata": {"name": "w"}, "data": {"k": "v"}})
        assert (await cluster.json_patch(f"{path}/w", patch))[0] == code


async def test_f26_deletion_is_no_field(namespaced: OpenNamespace) -> None:
    """Nobody marks an object as deleted by a write: 422; what an object has already may be sent back."""
    async with namespaced() as (cluster, ns):
        made = await cluster.make_widget(ns)
        path = f"/api/v1/namespaces/{ns}/configmaps"
        await cluster.post(path, {"metadata": {"name": "w", "finalizers": ["a.b/c"]}})
        for field, value in (("deletionTimestamp", "2026-01-01T00:00:00Z"), ("deletionGracePeriodSeconds", 5)):
            for place in (f"{path}/w", cluster.widgets(ns, "w")):
                code, body = await cluster.merge_patch(place, {"metadata": {field: value}})
                assert (code, {cause["field"] for cause in body["details"]["causes"]}) == (422, {f"metadata.{field}"})
            assert (await cluster.put(f"{path}/w", {"metadata": {"name": "w", field: value}}))[0] == 422
            replaced = widget(
                "w", {"size": 1}, meta={"resourceVersion": made["metadata"]["resourceVersion"], field: value}
            )
            assert (await cluster.put(cluster.widgets(ns, "w"), replaced))[0] == 422
            assert (await cluster.merge_patch(cluster.widgets(ns, "w", "status"), {"metadata": {field: value}}))[
                0
            ] == 200
        await cluster.delete(f"{path}/w")
        _, body = await cluster.get(f"{path}/w")
        assert (await cluster.put(f"{path}/w", body))[0] == 200
        assert (await cluster.put(f"{path}/w", {"metadata": {"name": "w"}}))[0] == 200, "the last finalizer, too"


async def test_f27_a_patch_that_takes_the_resource_version_away(namespaced: OpenNamespace) -> None:
    """Custom kinds and Leases are never replaced without one: 422. Others are."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns)
        leases, plain = f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases", f"/api/v1/namespaces/{ns}/configmaps"
        for path in (leases, plain):
            await cluster.post(path, {"metadata": {"name": "w"}})
        for version in ("", "0", None):
            patch: Json = {"metadata": {"resourceVersion": version, "labels": {"a": "b"}}}
            for path in (f"{leases}/w", cluster.widgets(ns, "w"), cluster.widgets(ns, "w", "status")):
                assert (await cluster.merge_patch(path, patch))[0] == 422, (path, version)
            assert (await cluster.merge_patch(f"{plain}/w", patch))[0] == 200


async def test_f28_applies_to_what_is_not_there(namespaced: OpenNamespace) -> None:
    """With a uid it is a conflict: that object is gone. A resourceVersion does not count, and 0 is any."""
    async with namespaced() as (cluster, ns):
        path = f"/api/v1/namespaces/{ns}/configmaps/w"
        body: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w"}}
        other = {**body, "metadata": {"name": "w", "uid": "aaaaaaaa-0000-0000-0000-000000000000"}}
        assert (await cluster.apply(path, other))[0] == 409
        for code in (201, 200):
            any_version = {**body, "metadata": {"name": "w", "resourceVersion": "0"}}
            assert (await cluster.apply(path, any_version))[0] == code
        assert (await cluster.apply(f"{path}2", {**body, "metadata": {"name": "w2", "resourceVersion": "1"}}))[0] == 201
