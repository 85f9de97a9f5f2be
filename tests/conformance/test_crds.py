"""Kinds from CustomResourceDefinitions.

Every CustomResourceDefinition that MultiKueue meets is accepted and served.
"""

from __future__ import annotations

import pytest

from multikueue.core.model.names import Json
from multikueue.testing import until
from tests.conformance.client import ConformanceClient, Open, OpenNamespace
from tests.conformance.kueue_crds import REAL, definitions
from tests.conformance.objects import GROUP, definition, widget


async def test_b1_definition_lifecycle(control_plane: Open) -> None:
    """A CRD is answered with 201, becomes Established, serves its kind, and takes it along when it goes."""
    async with control_plane() as cluster:
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        gizmos = f"/apis/{GROUP}/v1/namespaces/default/gizmos"

        async def established() -> bool:
            _, definition = await cluster.get(f"{definitions}/gizmos.{GROUP}")
            conditions = (definition.get("status") or {}).get("conditions") or []
            return any(entry["type"] == "Established" and entry["status"] == "True" for entry in conditions)

        async def answers(code: int) -> bool:
            return (await cluster.get(gizmos))[0] == code

        assert (await cluster.get(gizmos))[0] in (404, 429)
        code, body = await cluster.post(definitions, definition("Gizmo"))
        assert code == 201, body
        await until(established)
        await until(lambda: answers(200))
        assert (await cluster.get(gizmos))[1]["kind"] == "GizmoList"
        gizmo = {"apiVersion": f"{GROUP}/v1", "kind": "Gizmo", "metadata": {"name": "g"}}
        code, body = await cluster.post(gizmos, gizmo)
        assert code == 201, body
        code, body = await cluster.delete(f"{definitions}/gizmos.{GROUP}")
        assert code == 200, body
        await until(lambda: answers(404))


async def test_b2_schema_validation(namespaced: OpenNamespace) -> None:
    """Schema validation: wrong type / enum / range is answered with 422 Invalid with causes."""
    async with namespaced() as (cluster, ns):
        for spec in ({"size": "x"}, {"mode": "zzz"}, {"size": 99}):
            code, body = await cluster.post(cluster.widgets(ns), widget("bad", spec))
            assert code == 422, str(spec)
            assert body["reason"] == "Invalid"
            assert body["details"]["causes"]


async def test_b3_schema_defaults(namespaced: OpenNamespace) -> None:
    """Defaults applied."""
    async with namespaced() as (cluster, ns):
        body = await cluster.make_widget(ns, "a", {"mode": "a"})
        assert body["spec"].get("size") == 3


async def test_b4_schema_pruning(namespaced: OpenNamespace) -> None:
    """Unknown fields pruned; preserve-unknown kept."""
    async with namespaced() as (cluster, ns):
        body = await cluster.make_widget(ns, "a", {"junk": 1, "free": {"x": {"y": 1}}})
        assert "junk" not in body["spec"], "not pruned"
        assert body["spec"]["free"] == {"x": {"y": 1}}


async def test_b5_transition_rules(namespaced: OpenNamespace) -> None:
    """CEL x-kubernetes-validations (transition rule) is answered with 422."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns, "a", {"cluster": "c1"})
        code, body = await cluster.merge_patch(cluster.widgets(ns, "a"), {"spec": {"cluster": "c2"}})
        assert code == 422
        assert "immutable" in body["message"]


async def test_b6_two_versions_one_object(namespaced: OpenNamespace) -> None:
    """Two served versions, same object (conversion None)."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns, "a", version="v1alpha1")
        code, body = await cluster.get(cluster.widgets(ns, "a"))
        assert code == 200
        assert body["apiVersion"] == f"{GROUP}/v1"


async def test_b7_scale(namespaced: OpenNamespace) -> None:
    """Scale subresource GET/PATCH."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns, "a", {"replicas": 2})
        code, body = await cluster.get(cluster.widgets(ns, "a", "scale"))
        assert code == 200
        assert body["kind"] == "Scale"
        assert body["spec"]["replicas"] == 2
        code, body = await cluster.merge_patch(cluster.widgets(ns, "a", "scale"), {"spec": {"replicas": 5}})
        assert code == 200
        code, body = await cluster.get(cluster.widgets(ns, "a"))
        assert body["spec"]["replicas"] == 5


async def test_b8_strict_field_validation(namespaced: OpenNamespace) -> None:
    """FieldValidation=Strict unknown field is answered with 400."""
    async with namespaced() as (cluster, ns):
        code, _ = await cluster.post(
            cluster.widgets(ns), widget("s", {"junk": 1}), params={"fieldValidation": "Strict"}
        )
        assert code == 400


async def test_b9_printer_columns(namespaced: OpenNamespace) -> None:
    """AdditionalPrinterColumns via Table Accept header (kubectl get)."""
    async with namespaced() as (cluster, ns):
        await cluster.make_widget(ns, "a", {"mode": "a"})
        _, body = await cluster.get(
            cluster.widgets(ns), headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
        )
        assert body.get("kind") == "Table"
        assert "a" in body["rows"][0]["cells"]


@pytest.mark.parametrize("crds", REAL)
async def test_definitions_are_established(control_plane: Open, crds: str) -> None:
    """Kueue's, those of all job kinds, and OCM's: accepted names, Established, and every served version listed."""
    async with control_plane() as cluster:
        manifests = definitions(crds)
        assert manifests
        for manifest in manifests:
            await cluster.install(manifest)
        for manifest in manifests:
            await _is_established(cluster, manifest)


async def _is_established(cluster: ConformanceClient, manifest: Json) -> None:
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{manifest['metadata']['name']}"

    async def established() -> bool:
        code, definition = await cluster.get(path)
        assert code == 200, definition
        conditions = {item["type"]: item["status"] for item in definition.get("status", {}).get("conditions") or ()}
        return conditions.get("NamesAccepted") == conditions.get("Established") == "True"

    await until(established)
    spec = manifest["spec"]
    for version in spec["versions"]:
        if version["served"]:
            code, listed = await cluster.get(f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}")
            assert (code, listed.get("kind")) == (200, spec["names"].get("listKind", spec["names"]["kind"] + "List"))
