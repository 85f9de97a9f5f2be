"""Deletion: finalizers, preconditions, garbage collection."""

from __future__ import annotations

import re

from multikueue.testing import until
from tests.conformance.client import Open, OpenNamespace
from tests.conformance.objects import binding, owned_by, pod, widget


async def test_g1_delete(namespaced: OpenNamespace) -> None:
    """DELETE is answered with 200, then 404; second DELETE 404."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns)
        code, _ = await cluster.delete(cluster.widgets(ns, "w"))
        assert code == 200
        code, _ = await cluster.get(cluster.widgets(ns, "w"))
        assert code == 404
        code, _ = await cluster.delete(cluster.widgets(ns, "w"))
        assert code == 404


async def test_g2_finalizers_hold_the_object(namespaced: OpenNamespace) -> None:
    """Finalizers: DELETE sets deletionTimestamp (RFC3339 Z), object stays; clearing removes + DELETED event."""
    async with namespaced() as (cluster, ns):
        body = await cluster.make_widget(ns, meta={"finalizers": ["ex.com/f"]})
        async with cluster.watch(cluster.widgets(ns), resourceVersion=body["metadata"]["resourceVersion"]) as w:
            code, body = await cluster.delete(cluster.widgets(ns, "w"))
            assert code == 200
            code, body = await cluster.get(cluster.widgets(ns, "w"))
            assert code == 200
            assert re.fullmatch(
                "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ", body["metadata"].get("deletionTimestamp", "")
            ), body["metadata"].get("deletionTimestamp")
            code, _ = await cluster.merge_patch(cluster.widgets(ns, "w"), {"metadata": {"finalizers": None}})
            assert code == 200
            code, _ = await cluster.get(cluster.widgets(ns, "w"))
            assert code == 404
            ev = await w.take(2)
            assert [e["type"] for e in ev] == ["MODIFIED", "DELETED"]


async def test_g3_no_new_finalizers_while_deleting(namespaced: OpenNamespace) -> None:
    """Adding finalizer while terminating is answered with 422; removing one of two keeps object."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns, meta={"finalizers": ["ex.com/f", "ex.com/g"]})
        await cluster.delete(cluster.widgets(ns, "w"))
        code, _ = await cluster.merge_patch(
            cluster.widgets(ns, "w"), {"metadata": {"finalizers": ["ex.com/f", "ex.com/g", "ex.com/h"]}}
        )
        assert code == 422
        code, _ = await cluster.merge_patch(cluster.widgets(ns, "w"), {"metadata": {"finalizers": ["ex.com/g"]}})
        assert code == 200
        code, _ = await cluster.get(cluster.widgets(ns, "w"))
        assert code == 200


async def test_g4_preconditions(namespaced: OpenNamespace) -> None:
    """Delete preconditions uid / resourceVersion mismatch is answered with 409."""
    async with namespaced() as (cluster, ns):
        body = await cluster.make_widget(ns)
        code, _ = await cluster.delete(cluster.widgets(ns, "w"), {"preconditions": {"uid": "nope"}})
        assert code == 409
        code, _ = await cluster.delete(cluster.widgets(ns, "w"), {"preconditions": {"resourceVersion": "1"}})
        assert code == 409
        code, _ = await cluster.delete(
            cluster.widgets(ns, "w"),
            {"preconditions": {"uid": body["metadata"]["uid"], "resourceVersion": body["metadata"]["resourceVersion"]}},
        )
        assert code == 200


async def test_g5_delete_collection(control_plane: Open) -> None:
    """DELETE collection with labelSelector."""
    async with control_plane() as cluster:
        ns = await cluster.labelled_widgets()
        code, body = await cluster.delete(cluster.widgets(ns), params={"labelSelector": "x"})
        assert code == 200
        code, body = await cluster.get(cluster.widgets(ns))
        assert [i["metadata"]["name"] for i in body["items"]] == ["c"]


async def test_g6_foreground_deletion_waits(namespaced: OpenNamespace) -> None:
    """Foreground deletion holds the owner until the dependent that blocks it is gone."""
    async with namespaced() as (cluster, ns):
        owner = await cluster.make_widget(ns, "a")
        meta = {"finalizers": ["ex.com/f"], **owned_by(owner, blockOwnerDeletion=True)}
        await cluster.make_widget(ns, "dep", meta=meta)

        async def deleting() -> bool:
            _, dependent = await cluster.get(cluster.widgets(ns, "dep"))
            return "deletionTimestamp" in dependent["metadata"]

        async def gone() -> bool:
            return (await cluster.get(cluster.widgets(ns, "a")))[0] == 404

        code, _ = await cluster.delete(cluster.widgets(ns, "a"), {"propagationPolicy": "Foreground"})
        assert code == 200
        await until(deleting)
        code, body = await cluster.get(cluster.widgets(ns, "a"))
        assert code == 200
        assert body["metadata"]["finalizers"] == ["foregroundDeletion"]
        await cluster.merge_patch(cluster.widgets(ns, "dep"), {"metadata": {"finalizers": None}})
        await until(gone)


async def test_g7_dependents_are_collected(namespaced: OpenNamespace) -> None:
    """Objects whose owner is deleted go too."""
    async with namespaced() as (cluster, ns):
        owner = await cluster.make_widget(ns, "own")
        await cluster.make_widget(ns, "dep", meta=owned_by(owner))

        async def gone() -> bool:
            return (await cluster.get(cluster.widgets(ns, "dep")))[0] == 404

        await cluster.delete(cluster.widgets(ns, "own"))
        await until(gone)


async def test_g8_namespace_contents_are_deleted(namespaced: OpenNamespace) -> None:
    """Deleting a namespace deletes what is in it."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns, "a")

        async def gone() -> bool:
            return (await cluster.get(cluster.widgets(ns, "a")))[0] == 404

        code, _ = await cluster.delete(f"/api/v1/namespaces/{ns}")
        assert code == 200
        await until(gone)


async def test_g9_no_creation_in_a_terminating_namespace(namespaced: OpenNamespace) -> None:
    """While a namespace is being deleted nothing can be created in it."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns, "a", meta={"finalizers": ["ex.com/f"]})
        await cluster.delete(f"/api/v1/namespaces/{ns}")

        async def refused() -> bool:
            return (await cluster.post(cluster.widgets(ns), widget("b")))[0] == 403

        await until(refused)
        await cluster.merge_patch(cluster.widgets(ns, "a"), {"metadata": {"finalizers": None}})


async def test_g10_recreated_object_is_another(namespaced: OpenNamespace) -> None:
    """Delete then re-create same name: new uid, ADDED event."""
    async with namespaced() as (cluster, ns):
        body = await cluster.make_widget(ns)
        async with cluster.watch(cluster.widgets(ns), resourceVersion=body["metadata"]["resourceVersion"]) as w:
            await cluster.delete(cluster.widgets(ns, "w"))
            d2 = await cluster.make_widget(ns)
            assert body["metadata"]["uid"] != d2["metadata"]["uid"]
            assert [e["type"] for e in await w.take(2)] == ["DELETED", "ADDED"]


async def test_g11_delete_dry_run(namespaced: OpenNamespace) -> None:
    """DELETE dryRun=All keeps object; DeleteOptions gracePeriod on Pod."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns)
        code, _ = await cluster.delete(cluster.widgets(ns, "w"), params={"dryRun": "All"})
        assert code == 200
        code, _ = await cluster.get(cluster.widgets(ns, "w"))
        assert code == 200


async def test_g12_foreground_deletion_waits_at_each_step(namespaced: OpenNamespace) -> None:
    """The dependent of a dependent holds both its owners, though the collector deletes the one between them itself."""
    async with namespaced() as (cluster, ns):
        top = await cluster.make_widget(ns, "top")
        middle = await cluster.make_widget(ns, "middle", meta=owned_by(top, blockOwnerDeletion=True))
        meta = {"finalizers": ["ex.com/f"], **owned_by(middle, blockOwnerDeletion=True)}
        await cluster.make_widget(ns, "leaf", meta=meta)

        async def deleting() -> bool:
            _, leaf = await cluster.get(cluster.widgets(ns, "leaf"))
            return "deletionTimestamp" in leaf["metadata"]

        async def gone() -> bool:
            return all([(await cluster.get(cluster.widgets(ns, name)))[0] == 404 for name in ("top", "middle")])

        await cluster.delete(cluster.widgets(ns, "top"), {"propagationPolicy": "Foreground"})
        await until(deleting)
        for name in ("top", "middle"):
            code, body = await cluster.get(cluster.widgets(ns, name))
            assert (code, body["metadata"]["finalizers"]) == (200, ["foregroundDeletion"])
        await cluster.merge_patch(cluster.widgets(ns, "leaf"), {"metadata": {"finalizers": None}})
        await until(gone)


async def test_g13_foreground_deletion_waits_for_nobody_who_does_not_block(namespaced: OpenNamespace) -> None:
    """Without blockOwnerDeletion the owner goes at once, and its dependent after it."""
    async with namespaced() as (cluster, ns):
        owner = await cluster.make_widget(ns, "a")
        await cluster.make_widget(ns, "dep", meta={"finalizers": ["ex.com/f"], **owned_by(owner)})

        async def gone() -> bool:
            return (await cluster.get(cluster.widgets(ns, "a")))[0] == 404

        async def deleting() -> bool:
            _, dependent = await cluster.get(cluster.widgets(ns, "dep"))
            return "deletionTimestamp" in dependent["metadata"]

        await cluster.delete(cluster.widgets(ns, "a"), {"propagationPolicy": "Foreground"})
        await until(gone)
        await until(deleting)
        await cluster.merge_patch(cluster.widgets(ns, "dep"), {"metadata": {"finalizers": None}})


async def test_g14_a_second_deletion_can_be_in_the_foreground(namespaced: OpenNamespace) -> None:
    """What a finalizer held since a deletion in the background gets foregroundDeletion, and its dependents go."""
    async with namespaced() as (cluster, ns):
        owner = await cluster.make_widget(ns, "a", meta={"finalizers": ["ex.com/f"]})
        await cluster.make_widget(ns, "dep", meta=owned_by(owner, blockOwnerDeletion=True))

        async def gone() -> bool:
            return (await cluster.get(cluster.widgets(ns, "dep")))[0] == 404

        code, body = await cluster.delete(cluster.widgets(ns, "a"), {"propagationPolicy": "Background"})
        assert (code, body["metadata"]["finalizers"]) == (200, ["ex.com/f"])
        code, body = await cluster.delete(cluster.widgets(ns, "a"), {"propagationPolicy": "Foreground"})
        assert code == 200
        assert sorted(body["metadata"]["finalizers"]) == ["ex.com/f", "foregroundDeletion"]
        await until(gone)
        await cluster.merge_patch(cluster.widgets(ns, "a"), {"metadata": {"finalizers": None}})


async def test_g15_the_answer_tells_whether_it_is_gone(namespaced: OpenNamespace) -> None:
    """What is held is answered with the object and its deletionTimestamp; what is gone with a Status."""
    async with namespaced() as (cluster, ns):
        held = await cluster.make_widget(ns, "held", meta={"finalizers": ["ex.com/f"]})
        await cluster.make_widget(ns, "free")
        _, body = await cluster.delete(cluster.widgets(ns, "held"))
        assert (body["kind"], body["metadata"]["uid"]) == (held["kind"], held["metadata"]["uid"])
        assert body["metadata"]["deletionTimestamp"]
        assert int(body["metadata"]["resourceVersion"]) > int(held["metadata"]["resourceVersion"])
        _, body = await cluster.delete(cluster.widgets(ns, "free"))
        assert (body["kind"], body["status"]) == ("Status", "Success")
        await cluster.merge_patch(cluster.widgets(ns, "held"), {"metadata": {"finalizers": None}})


async def test_g16_a_binding_gives_a_pod_its_node_once(namespaced: OpenNamespace) -> None:
    """Nothing else does; not twice, not behind a scheduling gate, not to one that is being deleted."""
    async with namespaced() as (cluster, ns):
        pods, bindings = f"/api/v1/namespaces/{ns}/pods", f"/api/v1/namespaces/{ns}/bindings"
        gated = pod("gated")
        gated["spec"]["schedulingGates"] = [{"name": "ex.com/wait"}]
        held = pod("held")
        held["metadata"]["finalizers"] = ["ex.com/f"]
        for made in (pod("p"), gated, held):
            assert (await cluster.post(pods, made))[0] == 201
        await cluster.delete(f"{pods}/held")
        code, _ = await cluster.merge_patch(f"{pods}/p", {"spec": {"nodeName": "n1"}})
        assert code == 422
        code, body = await cluster.post(bindings, binding("p", "n1"))
        assert (code, body["kind"], body["status"]) == (201, "Status", "Success")
        _, body = await cluster.get(f"{pods}/p")
        assert body["spec"]["nodeName"] == "n1"
        (scheduled,) = [condition for condition in body["status"]["conditions"] if condition["type"] == "PodScheduled"]
        assert scheduled["status"] == "True"
        for name in ("p", "gated", "held"):
            code, body = await cluster.post(bindings, binding(name, "n2"))
            assert (name, code, body["reason"]) == (name, 409, "Conflict")
        code, _ = await cluster.post(bindings, binding("missing", "n1"))
        assert code == 404
        code, _ = await cluster.post(bindings, binding("p", ""))
        assert code == 500  # no 422, though it is the client's fault
        code, _ = await cluster.get(bindings)
        assert code == 405
        await cluster.merge_patch(f"{pods}/held", {"metadata": {"finalizers": None}})


async def test_g17_a_pod_with_a_node_stays_until_its_kubelet_deletes_it(namespaced: OpenNamespace) -> None:
    """It has its grace period, which only gets shorter; without a node, or once it has ended, there is none."""
    async with namespaced() as (cluster, ns):
        pods = f"/api/v1/namespaces/{ns}/pods"
        for name in ("runs", "waits", "ended"):
            await cluster.post(pods, pod(name))
        for name in ("runs", "ended"):
            await cluster.post(f"/api/v1/namespaces/{ns}/bindings", binding(name, "n1"))
        await cluster.merge_patch(f"{pods}/ended/status", {"status": {"phase": "Failed"}})
        for name in ("waits", "ended"):
            await cluster.delete(f"{pods}/{name}")
            assert (name, (await cluster.get(f"{pods}/{name}"))[0]) == (name, 404)
        await cluster.merge_patch(f"{pods}/runs/status", {"status": {"phase": "Running"}})
        for options in (None, {"gracePeriodSeconds": 60}, {"propagationPolicy": "Foreground"}):
            code, body = await cluster.delete(f"{pods}/runs", options)
            assert (code, body["metadata"]["deletionGracePeriodSeconds"]) == (200, 30)
        await cluster.merge_patch(f"{pods}/runs/status", {"status": {"phase": "Failed"}})
        assert (await cluster.delete(f"{pods}/runs"))[0] == 200
        assert (await cluster.get(f"{pods}/runs"))[0] == 200
        code, _ = await cluster.delete(f"{pods}/runs", {"gracePeriodSeconds": 0})
        assert code == 200
        assert (await cluster.get(f"{pods}/runs"))[0] == 404
