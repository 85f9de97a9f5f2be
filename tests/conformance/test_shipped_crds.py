"""Every CustomResourceDefinition that MultiKueue meets is accepted and served."""

from __future__ import annotations

import pytest

from multikueue.core.model.names import Json
from multikueue.testing import until
from tests.conformance.client import ConformanceClient, Open
from tests.conformance.kueue_crds import REAL, definitions


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
        code, found = await cluster.get(path)
        assert code == 200, found
        conditions = {item["type"]: item["status"] for item in found.get("status", {}).get("conditions") or ()}
        return conditions.get("NamesAccepted") == conditions.get("Established") == "True"

    await until(established)
    spec = manifest["spec"]
    for version in spec["versions"]:
        if version["served"]:
            code, listed = await cluster.get(f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}")
            assert (code, listed.get("kind")) == (200, spec["names"].get("listKind", spec["names"]["kind"] + "List"))
