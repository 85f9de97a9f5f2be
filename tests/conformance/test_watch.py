"""Watches."""

from __future__ import annotations

import contextlib

from multikueue.testing import until
from tests.conformance.client import Open, OpenNamespace
from tests.conformance.objects import GROUP


async def test_h1_only_later_events(namespaced: OpenNamespace) -> None:
    """Watch from list resourceVersion: only later events, ADDED/MODIFIED/DELETED in order, resourceVersions rise."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns, "old")
        _, listed = await cluster.get(cluster.widgets(ns))
        async with cluster.watch(cluster.widgets(ns), resourceVersion=listed["metadata"]["resourceVersion"]) as w:
            await cluster.make_widget(ns, "a")
            await cluster.merge_patch(cluster.widgets(ns, "a"), {"spec": {"size": 2}})
            await cluster.delete(cluster.widgets(ns, "a"))
            ev = await w.take(3)
            assert [(e["type"], e["object"]["metadata"]["name"]) for e in ev] == [
                ("ADDED", "a"),
                ("MODIFIED", "a"),
                ("DELETED", "a"),
            ]
            rv = [int(e["object"]["metadata"]["resourceVersion"]) for e in ev]
            assert rv == sorted(rv), rv
            assert len(set(rv)) == 3, rv


async def test_h2_initial_events(namespaced: OpenNamespace) -> None:
    """Watch without resourceVersion: synthetic ADDED for existing, then live."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns, "old")
        async with cluster.watch(cluster.widgets(ns)) as w:
            e = await w.next()
            assert (e["type"], e["object"]["metadata"]["name"]) == ("ADDED", "old")
            await cluster.make_widget(ns, "b")
            e = await w.next()
            assert e["object"]["metadata"]["name"] == "b"


async def test_h3_label_selector_transitions(namespaced: OpenNamespace) -> None:
    """Watch label selector: leaving selector: then DELETED, entering: then ADDED."""
    async with namespaced() as (cluster, ns):
        body = await cluster.make_widget(ns, "a")
        async with cluster.watch(
            cluster.widgets(ns), labelSelector="x=1", resourceVersion=body["metadata"]["resourceVersion"]
        ) as w:
            await cluster.merge_patch(cluster.widgets(ns, "a"), {"metadata": {"labels": {"x": "1"}}})
            await cluster.merge_patch(cluster.widgets(ns, "a"), {"spec": {"size": 2}})
            await cluster.merge_patch(cluster.widgets(ns, "a"), {"metadata": {"labels": {"x": "2"}}})
            await cluster.make_widget(ns, "noise")
            assert [e["type"] for e in await w.take(3)] == ["ADDED", "MODIFIED", "DELETED"]


async def test_h4_field_selector(namespaced: OpenNamespace) -> None:
    """Watch fieldSelector metadata.name."""
    async with namespaced() as (cluster, ns):
        body = await cluster.make_widget(ns, "z")
        async with cluster.watch(
            cluster.widgets(ns), fieldSelector="metadata.name=b", resourceVersion=body["metadata"]["resourceVersion"]
        ) as w:
            await cluster.make_widget(ns, "a")
            await cluster.make_widget(ns, "b")
            e = await w.next()
            assert e["object"]["metadata"]["name"] == "b"


async def test_h5_bookmarks(control_plane: Open) -> None:
    """A watch that asks for bookmarks gets one before its timeout once something changed, be it elsewhere."""
    async with control_plane() as cluster:
        ns, elsewhere = await cluster.namespace(), await cluster.namespace()
        widget = await cluster.make_widget(ns, "a")
        revision = widget["metadata"]["resourceVersion"]
        params = {"allowWatchBookmarks": "true", "timeoutSeconds": 8, "resourceVersion": revision}
        async with cluster.watch(cluster.widgets(ns), **params) as stream:
            other = await cluster.make_widget(elsewhere, "b")
            revision_seen = 0
            while revision_seen < int(other["metadata"]["resourceVersion"]):  # one may have been due before the change
                event = await stream.next(10)
                assert event["type"] == "BOOKMARK"
                revision_seen = int(event["object"]["metadata"]["resourceVersion"])
            assert event["object"]["kind"] == "Widget"


async def test_h6_expired_resource_version(namespaced: OpenNamespace) -> None:
    """Expired resourceVersion is answered with 410 Expired (ERROR event or HTTP)."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns, "a")
        await cluster.plane.compact()

        async def ready() -> bool:  # a server that just came up answers 429 for a moment
            return (await cluster.get(cluster.widgets(ns)))[0] == 200

        await until(ready)
        async with cluster.watch(cluster.widgets(ns), resourceVersion=1) as w:
            e = await w.next()
            s = e["object"] if e.get("type") == "ERROR" else e
            assert s.get("code") == 410
            assert s.get("reason") in ("Expired", "Gone"), s


async def test_h7_timeout_ends_the_stream(namespaced: OpenNamespace) -> None:
    """TimeoutSeconds ends stream cleanly."""
    async with namespaced() as (cluster, ns):
        body = await cluster.make_widget(ns, "a")
        async with cluster.watch(
            cluster.widgets(ns), timeoutSeconds=1, resourceVersion=body["metadata"]["resourceVersion"]
        ) as w:
            assert await w.ends()


async def test_h8_spellings_of_watch(namespaced: OpenNamespace) -> None:
    """Watch=1 and watch=True (kubernetes_asyncio spelling) accepted."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns, "a")
        for s in ("1", "True"):
            async with cluster.watch(cluster.widgets(ns), watch=s) as w:
                assert (await w.next())["type"] == "ADDED", s


async def test_h9_resume(namespaced: OpenNamespace) -> None:
    """Resume after drop from last resourceVersion: nothing lost, nothing duplicated."""
    async with namespaced() as (cluster, ns):
        body = await cluster.make_widget(ns, "a")
        async with cluster.watch(cluster.widgets(ns), resourceVersion=body["metadata"]["resourceVersion"]) as w:
            await cluster.make_widget(ns, "b")
            e = await w.next()
            rv = e["object"]["metadata"]["resourceVersion"]
        await cluster.make_widget(ns, "c")
        await cluster.delete(cluster.widgets(ns, "b"))
        async with cluster.watch(cluster.widgets(ns), resourceVersion=rv) as w:
            assert [(e["type"], e["object"]["metadata"]["name"]) for e in await w.take(2)] == [
                ("ADDED", "c"),
                ("DELETED", "b"),
            ]


async def test_h10_python_client_watch(namespaced: OpenNamespace) -> None:
    """kubernetes_asyncio lists, and then follows the changes."""
    from kubernetes_asyncio import client, watch

    async with namespaced() as (cluster, ns), cluster.python_client() as api, watch.Watch() as watcher:
        objects = client.CustomObjectsApi(api)
        start = await objects.list_namespaced_custom_object(GROUP, "v1", ns, "widgets")
        await cluster.make_widget(ns, "a")
        await cluster.merge_patch(cluster.widgets(ns, "a"), {"spec": {"size": 2}})
        await cluster.delete(cluster.widgets(ns, "a"))
        stream = watcher.stream(
            objects.list_namespaced_custom_object,
            *(GROUP, "v1", ns, "widgets"),
            resource_version=start["metadata"]["resourceVersion"],
            timeout_seconds=5,
        )
        types = []
        async for event in stream:
            types.append(event["type"])
            if event["type"] == "DELETED":
                break
        assert types == ["ADDED", "MODIFIED", "DELETED"]


async def test_h11_watch_list(namespaced: OpenNamespace) -> None:
    """WatchList: sendInitialEvents + resourceVersionMatch=NotOlderThan, initial-events-end bookmark."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns, "a")
        async with cluster.watch(
            cluster.widgets(ns),
            sendInitialEvents="true",
            resourceVersionMatch="NotOlderThan",
            allowWatchBookmarks="true",
        ) as w:
            ev = await w.take(2)
            assert [e["type"] for e in ev] == ["ADDED", "BOOKMARK"]
            assert ev[1]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true"


async def test_h12_namespaces_are_apart(control_plane: Open) -> None:
    """Watch isolation between namespaces; all-namespaces watch sees both."""
    async with control_plane() as cluster:
        n1, n2 = (await cluster.namespace(), await cluster.namespace())
        body = await cluster.make_widget(n1, "z")
        async with (
            cluster.watch(cluster.widgets(n1), resourceVersion=body["metadata"]["resourceVersion"]) as w1,
            cluster.watch(f"/apis/{GROUP}/v1/widgets", resourceVersion=body["metadata"]["resourceVersion"]) as wa,
        ):
            await cluster.make_widget(n2, "x")
            await cluster.make_widget(n1, "y")
            e = await w1.next()
            assert e["object"]["metadata"]["name"] == "y"
            assert [e["object"]["metadata"]["name"] for e in await wa.take(2)] == ["x", "y"]


async def test_h13_many_watchers(control_plane: Open) -> None:
    """100 watchers all get the event."""
    async with control_plane() as cluster, contextlib.AsyncExitStack() as stack:
        ns = await cluster.namespace()
        widget = await cluster.make_widget(ns, "z")
        revision = widget["metadata"]["resourceVersion"]
        streams = [
            await stack.enter_async_context(cluster.watch(cluster.widgets(ns), resourceVersion=revision))
            for _ in range(100)
        ]
        await cluster.make_widget(ns, "y")
        for stream in streams:
            event = await stream.next()
            assert event["object"]["metadata"]["name"] == "y"


async def test_h14_deleted_event_has_the_last_state(namespaced: OpenNamespace) -> None:
    """DELETED event carries last state with new resourceVersion."""
    async with namespaced() as (cluster, ns):
        body = await cluster.make_widget(ns, "a")
        async with cluster.watch(cluster.widgets(ns), resourceVersion=body["metadata"]["resourceVersion"]) as w:
            await cluster.delete(cluster.widgets(ns, "a"))
            e = await w.next()
            assert e["type"] == "DELETED"
            assert int(e["object"]["metadata"]["resourceVersion"]) > int(body["metadata"]["resourceVersion"])
            assert e["object"]["spec"]["size"] == 1


async def test_h15_invalid_resource_version(namespaced: OpenNamespace) -> None:
    """Invalid resourceVersion in watch: then error status."""
    async with namespaced() as (cluster, ns), cluster.watch(cluster.widgets(ns), resourceVersion="abc") as w:
        assert w.response.status >= 400, w.response.status
