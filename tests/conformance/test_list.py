"""Reading and listing objects."""

from __future__ import annotations

import pytest

from tests.conformance.client import Open, OpenNamespace
from tests.conformance.objects import GROUP, pod


async def test_d1_get_missing(namespaced: OpenNamespace) -> None:
    """GET missing is answered with 404 Status{reason NotFound, details.name/kind}."""
    async with namespaced() as (cluster, ns):
        code, body = await cluster.get(cluster.widgets(ns, "zz"))
        assert code == 404
        assert body["kind"] == "Status"
        assert body["reason"] == "NotFound"
        assert body["details"].get("name") == "zz"
        assert body["details"].get("kind") == "widgets"


async def test_d2_list_envelope(namespaced: OpenNamespace) -> None:
    """List envelope: kind WidgetList, apiVersion, metadata.resourceVersion numeric."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns)
        _, body = await cluster.get(cluster.widgets(ns))
        assert body.get("kind") == "WidgetList"
        assert body.get("apiVersion") == f"{GROUP}/v1"
        assert body["metadata"]["resourceVersion"].isdigit(), body["metadata"]


async def test_d3_one_or_all_namespaces(control_plane: Open) -> None:
    """Namespaced vs all-namespaces list."""
    async with control_plane() as cluster:
        n1, n2 = (await cluster.namespace(), await cluster.namespace())
        await cluster.make_widget(n1, "a")
        await cluster.make_widget(n2, "b")
        _, body = await cluster.get(cluster.widgets(n1))
        assert [i["metadata"]["name"] for i in body["items"]] == ["a"]
        _, body = await cluster.get(f"/apis/{GROUP}/v1/widgets")
        s = {(i["metadata"]["namespace"], i["metadata"]["name"]) for i in body["items"]}
        assert {(n1, "a"), (n2, "b")} <= s


async def test_d4_pages_of_one_snapshot(namespaced: OpenNamespace) -> None:
    """Limit/continue pagination, consistent snapshot."""
    async with namespaced() as (cluster, ns):
        for i in range(5):
            await cluster.make_widget(ns, f"a{i}")
        code, body = await cluster.get(cluster.widgets(ns), params={"limit": "2"})
        assert len(body["items"]) == 2
        assert body["metadata"].get("continue")
        assert body["metadata"].get("remainingItemCount") == 3
        rv = body["metadata"]["resourceVersion"]
        await cluster.make_widget(ns, "a9")
        seen = [i["metadata"]["name"] for i in body["items"]]
        while body["metadata"].get("continue"):
            code, body = await cluster.get(
                cluster.widgets(ns), params={"limit": "2", "continue": body["metadata"]["continue"]}
            )
            assert code == 200
            seen += [i["metadata"]["name"] for i in body["items"]]
            assert body["metadata"]["resourceVersion"] == rv
        assert seen == [f"a{i}" for i in range(5)]


async def test_d5_label_selectors(control_plane: Open) -> None:
    """Label selectors =, !=, in, notin, exists, !exists, AND."""
    async with control_plane() as cluster:
        ns = await cluster.labelled_widgets()
        for sel, want in (
            ("x=1", "a"),
            ("x==2", "b"),
            ("x!=1", "bc"),
            ("x in (1,2)", "ab"),
            ("x notin (1)", "bc"),
            ("x", "ab"),
            ("!x", "c"),
            ("x,y=p", "a"),
            ("", "abc"),
        ):
            _, body = await cluster.get(cluster.widgets(ns), params={"labelSelector": sel})
            assert "".join(sorted(i["metadata"]["name"] for i in body["items"])) == want, sel


async def test_d6_invalid_label_selector(namespaced: OpenNamespace) -> None:
    """Invalid label selector is answered with 400."""
    async with namespaced() as (cluster, ns):
        code, _ = await cluster.get(cluster.widgets(ns), params={"labelSelector": "x in (1"})
        assert code == 400


async def test_d7_field_selectors(namespaced: OpenNamespace) -> None:
    """Field selector metadata.name, != ; CRD selectableFields; unknown field is answered with 400."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns, "a", {"mode": "a"})
        await cluster.make_widget(ns, "b", {"mode": "b"})
        code, body = await cluster.get(cluster.widgets(ns), params={"fieldSelector": "metadata.name=a"})
        assert [i["metadata"]["name"] for i in body["items"]] == ["a"]
        code, body = await cluster.get(cluster.widgets(ns), params={"fieldSelector": "spec.mode=b"})
        assert [i["metadata"]["name"] for i in body["items"]] == ["b"]
        code, body = await cluster.get(cluster.widgets(ns), params={"fieldSelector": "metadata.name!=a"})
        assert [i["metadata"]["name"] for i in body["items"]] == ["b"]
        code, body = await cluster.get(cluster.widgets(ns), params={"fieldSelector": "spec.size=1"})
        assert code == 400


async def test_d8_pod_field_selectors(namespaced: OpenNamespace) -> None:
    """Pods fieldSelector spec.nodeName / status.phase."""
    async with namespaced() as (cluster, ns):
        p = pod("p1")
        p["spec"]["nodeName"] = "n1"
        code, body = await cluster.post(f"/api/v1/namespaces/{ns}/pods", p)
        assert code == 201
        code, body = await cluster.post(f"/api/v1/namespaces/{ns}/pods", pod("p2"))
        assert code == 201
        code, body = await cluster.get(
            f"/api/v1/namespaces/{ns}/pods", params={"fieldSelector": "spec.nodeName=n1,status.phase=Pending"}
        )
        assert [i["metadata"]["name"] for i in body["items"]] == ["p1"]


async def test_d9_list_resource_versions(namespaced: OpenNamespace) -> None:
    """A list at resourceVersion 0 is answered; one at a resourceVersion that is none is a 400."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns, "a")
        code, _ = await cluster.get(cluster.widgets(ns), params={"resourceVersion": "0"})
        assert code == 200
        code, _ = await cluster.get(cluster.widgets(ns), params={"resourceVersion": "abc"})
        assert code == 400


async def test_d10_exact_resource_version(namespaced: OpenNamespace) -> None:
    """ResourceVersionMatch=Exact returns old snapshot."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns, "a")
        code, body = await cluster.get(cluster.widgets(ns))
        rv = body["metadata"]["resourceVersion"]
        await cluster.make_widget(ns, "b")
        code, body = await cluster.get(
            cluster.widgets(ns), params={"resourceVersion": rv, "resourceVersionMatch": "Exact"}
        )
        assert code == 200
        assert [i["metadata"]["name"] for i in body["items"]] == ["a"]


async def test_d11_partial_metadata(namespaced: OpenNamespace) -> None:
    """PartialObjectMetadataList Accept."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns, "a")
        _, body = await cluster.get(
            cluster.widgets(ns), headers={"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
        )
        assert body.get("kind") == "PartialObjectMetadataList"
        assert "spec" not in body["items"][0]


@pytest.mark.parametrize(
    "selector",
    [
        *("x/=a", "x/y/z=a", "A.B/c=d", "a..b/c", "x" * 64),
        *("a=-b", "a=b-", f"a={'x' * 64}", "a in (b c)", "a in ((b)", "a in (-b)", "a in (b", "a notin b"),
        *("a>1.0", "a>-1", "a>x", "a<", "a>9223372036854775808", "a=b,", "a,"),
    ],
)
async def test_d34_label_selectors_that_are_none(namespaced: OpenNamespace, selector: str) -> None:
    """What can be no label's key or value, and a number that is none, is answered with 400."""
    async with namespaced() as (cluster, ns):
        code, _ = await cluster.get(cluster.widgets(ns), params={"labelSelector": selector})
        assert code == 400


async def test_d35_label_selectors_for_what_is_empty(namespaced: OpenNamespace) -> None:
    """Nothing between brackets and commas is the empty value."""
    async with namespaced() as (cluster, ns):
        path = f"/api/v1/namespaces/{ns}/configmaps"
        for name, labels in {
            "e": {"a": ""},
            "b": {"a": "b"},
            "c": {"a": "c"},
            "n": {"a": "5"},
            "u": {"a": "1_0"},
        }.items():
            await cluster.post(path, {"metadata": {"name": name, "labels": labels}})
        for selector, wanted in {
            "a in ()": "e",
            "a in (b,)": "be",
            "a in (,b)": "be",
            "a in (b,,c)": "bce",
            "a notin ()": "bcnu",
            "a=": "e",
            "a>4": "n",
            "a > 04": "n",
            "a<5": "",
        }.items():
            selected = {"labelSelector": f"{selector},a"}  # a real server keeps a ConfigMap of its own there
            code, body = await cluster.get(path, params=selected)
            assert code == 200
            assert "".join(sorted(item["metadata"]["name"] for item in body["items"])) == wanted, selector
