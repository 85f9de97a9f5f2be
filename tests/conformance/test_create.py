"""Creating objects."""

from __future__ import annotations

import re

import pytest

from tests.conformance.client import Open, OpenNamespace
from tests.conformance.objects import GROUP, config_map, pod, widget


async def test_c1_created_metadata(namespaced: OpenNamespace) -> None:
    """Create: 201, uid, resourceVersion, creationTimestamp, generation=1, namespace filled from URL."""
    async with namespaced() as (cluster, ns):
        code, body = await cluster.post(cluster.widgets(ns), widget("a"))
        assert code == 201
        m = body["metadata"]
        assert m.get("namespace") == ns
        assert m.get("uid")
        assert str(m.get("resourceVersion", "")).isdigit()
        assert re.fullmatch("\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ", m.get("creationTimestamp", ""))
        assert m.get("generation") == 1


async def test_c2_duplicate(namespaced: OpenNamespace) -> None:
    """Duplicate create is answered with 409 AlreadyExists with details.name."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns)
        code, body = await cluster.post(cluster.widgets(ns), widget("w"))
        assert code == 409
        assert body["reason"] == "AlreadyExists"
        assert body["details"].get("name") == "w"


async def test_c3_generated_names(namespaced: OpenNamespace) -> None:
    """GenerateName, several objects."""
    async with namespaced() as (cluster, ns):
        names = set()
        for _ in range(3):
            code, body = await cluster.post(cluster.widgets(ns), widget(None, meta={"generateName": "g-"}))
            assert code == 201
            assert body["metadata"].get("name", "").startswith("g-")
            assert len(body["metadata"]["name"]) > 2
            names.add(body["metadata"]["name"])
        assert len(names) == 3


async def test_c4_namespace_mismatch(namespaced: OpenNamespace) -> None:
    """Namespace mismatch body/URL is answered with 400."""
    async with namespaced() as (cluster, ns):
        code, body = await cluster.post(cluster.widgets(ns), widget("a", meta={"namespace": "other"}))
        assert code == 400
        assert body["reason"] == "BadRequest"


async def test_c5_missing_name(namespaced: OpenNamespace) -> None:
    """No name and no generateName is answered with 422."""
    async with namespaced() as (cluster, ns):
        code, _ = await cluster.post(cluster.widgets(ns), widget(None))
        assert code == 422


async def test_c6_invalid_name(namespaced: OpenNamespace) -> None:
    """Invalid DNS-1123 name is answered with 422."""
    async with namespaced() as (cluster, ns):
        code, _ = await cluster.post(cluster.widgets(ns), widget("Bad_Name"))
        assert code == 422


async def test_c7_status_is_ignored(namespaced: OpenNamespace) -> None:
    """Create ignores .status when status subresource on."""
    async with namespaced() as (cluster, ns):
        body = await cluster.make_widget(ns, "a", status={"phase": "X"})
        assert "status" not in body, "status kept"


async def test_c8_missing_namespace(control_plane: Open) -> None:
    """Create in a missing namespace is answered with 404."""
    async with control_plane() as cluster:
        code, _ = await cluster.post(cluster.widgets("no-such-ns-zz"), widget("a"))
        assert code == 404


async def test_c9_dry_run(namespaced: OpenNamespace) -> None:
    """DryRun=All does not persist."""
    async with namespaced() as (cluster, ns):
        code, _ = await cluster.post(cluster.widgets(ns), widget("a"), params={"dryRun": "All"})
        assert code == 201
        code, _ = await cluster.get(cluster.widgets(ns, "a"))
        assert code == 404


async def test_c10_wrong_kind_or_version(namespaced: OpenNamespace) -> None:
    """Wrong kind is answered with 422 (CR) / 400 (core), wrong or missing apiVersion/kind is answered with 400."""
    async with namespaced() as (cluster, ns):
        o = widget("a")
        o["kind"] = "Other"
        code, _ = await cluster.post(cluster.widgets(ns), o)
        assert code == 422, "CR kind"
        o = widget("a")
        o["apiVersion"] = f"{GROUP}/v1alpha1"
        code, _ = await cluster.post(cluster.widgets(ns), o)
        assert code == 400, "CR version"
        o = config_map("a")
        o["kind"] = "Secret"
        code, _ = await cluster.post(f"/api/v1/namespaces/{ns}/configmaps", o)
        assert code == 400, "core kind"
        o = widget("a")
        o.pop("kind")
        code, _ = await cluster.post(cluster.widgets(ns), o)
        assert code == 400, "no kind"


async def test_c11_secrets_and_namespaces_are_defaulted(namespaced: OpenNamespace) -> None:
    """Secret stringData: then data(base64); namespace auto default labels."""
    async with namespaced() as (cluster, ns):
        code, body = await cluster.post(
            f"/api/v1/namespaces/{ns}/secrets",
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "v"}},
        )
        assert code == 201
        assert body.get("data") == {"k": "dg=="}
        assert "stringData" not in body
        code, body = await cluster.get(f"/api/v1/namespaces/{ns}")
        assert code == 200
        assert body["status"]["phase"] == "Active"
        assert body["metadata"]["labels"]["kubernetes.io/metadata.name"] == ns


async def test_c12_resource_version_is_refused(namespaced: OpenNamespace) -> None:
    """Create with resourceVersion set is rejected."""
    async with namespaced() as (cluster, ns):
        code, _ = await cluster.post(cluster.widgets(ns), widget("a", meta={"resourceVersion": "5"}))
        assert code >= 400, code


async def test_c13_malformed_json(namespaced: OpenNamespace) -> None:
    """Malformed JSON is answered with 400."""
    async with namespaced() as (cluster, ns):
        code, body = await cluster.request("POST", cluster.widgets(ns), raw="{bad")
        assert code == 400
        assert body.get("kind") == "Status"


async def test_c14_invalid_label(namespaced: OpenNamespace) -> None:
    """Invalid label value is answered with 422."""
    async with namespaced() as (cluster, ns):
        code, _ = await cluster.post(cluster.widgets(ns), widget("a", meta={"labels": {"x": "bad value!"}}))
        assert code == 422


async def test_d30_typed_clients_name_no_kind(namespaced: OpenNamespace) -> None:
    """A built-in object needs no apiVersion and kind: the path says them. A custom one does, and so does an apply."""
    async with namespaced() as (cluster, ns):
        path = f"/api/v1/namespaces/{ns}/configmaps"
        code, body = await cluster.post(path, {"metadata": {"name": "a"}})
        assert (code, body["kind"], body["apiVersion"]) == (201, "ConfigMap", "v1")
        assert (await cluster.put(f"{path}/a", {"metadata": {"name": "a"}, "data": {"x": "y"}}))[0] == 200
        assert (await cluster.apply(f"{path}/a", {"metadata": {"name": "a"}}))[0] == 400
        assert (await cluster.post(cluster.widgets(ns), {"metadata": {"name": "a"}}))[0] == 400


async def test_d31_micro_times_have_six_digits(namespaced: OpenNamespace) -> None:
    """A Lease's renewTime, in UTC; a day that there is not is the client's mistake."""
    async with namespaced() as (cluster, ns):
        path = f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
        for number, (given, kept) in enumerate(
            [
                ("2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05.678901Z"),
                ("2026-01-02T04:04:05.678901+01:00", "2026-01-02T03:04:05.678901Z"),
                ("2026-01-02T03:04:05Z", None),
                ("2026-01-02T03:04:05.678Z", None),
                ("2026-01-02T03:04:05+00:00", None),
                ("2026-02-30T03:04:05.678901Z", None),
                ("2026-01-02T24:00:00.000000Z", None),
            ]
        ):
            lease = {"metadata": {"name": f"l{number}"}, "spec": {"renewTime": given}}
            code, body = await cluster.post(path, lease)
            assert (code, body.get("spec", {}).get("renewTime")) == ((201, kept) if kept else (400, None)), given


async def test_d32_integers_are_whole_and_bounded(namespaced: OpenNamespace) -> None:
    """`4 / 2` of Python is 2.0: a create of that is refused, a merge patch too, an apply is not."""
    async with namespaced() as (cluster, ns):
        path = f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
        spec = "leaseDurationSeconds"
        for value in (2.0, 2.5, 2**31, 2**64, -(2**31) - 1):
            assert (await cluster.post(path, {"metadata": {"name": "a"}, "spec": {spec: value}}))[0] == 400, value
        assert (await cluster.post(path, {"metadata": {"name": "a"}, "spec": {spec: 2}}))[0] == 201
        assert (await cluster.merge_patch(f"{path}/a", {"spec": {spec: 3.0}}))[0] == 422
        assert (await cluster.strategic_patch(f"{path}/a", {"spec": {spec: 3.0}}))[0] == 200
        applied = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}}
        code, body = await cluster.apply(f"{path}/a", {**applied, "spec": {spec: 4.0}}, force=True)
        assert (code, body["spec"][spec]) == (200, 4)


async def test_d33_unknown_fields_are_told(namespaced: OpenNamespace) -> None:
    """In a header for each, unless the client says Ignore; what it may say has capital letters."""
    async with namespaced() as (cluster, ns):
        path = f"/api/v1/namespaces/{ns}/configmaps"
        for number, (validation, warnings) in enumerate([("", 1), ("Warn", 1), ("Ignore", 0)]):
            params = {"fieldValidation": validation} if validation else {}
            body = {"metadata": {"name": f"a{number}"}, "junk": 1}
            async with cluster.session.post(cluster.plane.url + path, json=body, params=params) as response:
                assert response.status == 201
                wanted = ['299 - "unknown field \\"junk\\""'] * warnings
                assert response.headers.getall("Warning", []) == wanted
        for wrong in ("strict", "x"):
            code, _ = await cluster.post(path, {"metadata": {"name": "b"}}, params={"fieldValidation": wrong})
            assert code == 422


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("2026-01-02T03:04:05,678901Z", "2026-01-02T03:04:05.678901Z"),
        ("2026-01-02T3:04:05.678901Z", "2026-01-02T03:04:05.678901Z"),
        ("0001-01-01T00:00:00.000000Z", None),
        ("0001-01-01T00:00:00.000001Z", "0001-01-01T00:00:00.000001Z"),
    ],
)
async def test_d36_times_as_go_reads_them(namespaced: OpenNamespace, given: str, kept: str | None) -> None:
    """A comma before the fraction, an hour of one digit, and Go's zero, which is no time."""
    async with namespaced() as (cluster, ns):
        path = f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
        code, body = await cluster.post(path, {"metadata": {"name": "l"}, "spec": {"renewTime": given}})
        assert (code, body.get("spec", {}).get("renewTime")) == (201, kept)
        pods = f"/api/v1/namespaces/{ns}/pods"
        await cluster.post(pods, pod("p"))
        code, body = await cluster.merge_patch(f"{pods}/p/status", {"status": {"startTime": given}})
        seconds = f"{kept[:19]}Z" if kept and kept > "0002" else None
        assert (code, body.get("status", {}).get("startTime")) == (200, seconds)
