"""CustomResourceDefinitions: read from files, applied and waited for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anyio
import yaml

from multikueue.core.model.names import Json
from tests.controlplane.api import Api
from tests.controlplane.polling import poll_until

_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_SECONDS = 60.0  # it takes one; the rest is for a busy machine


def read(folder: Path) -> list[Json]:
    """Read every CRD of a folder's YAML files."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # Kueue's CRDs take a second without libyaml
    documents = [doc for file in sorted(folder.glob("*.yaml")) for doc in yaml.load_all(file.read_text(), loader)]
    return [doc for doc in documents if isinstance(doc, dict) and doc["kind"] == "CustomResourceDefinition"]


async def establish(admin: Api, crds: Sequence[Json]) -> None:
    """Apply CRDs and wait until every version of each is served.

    Raises:
        NotReady: one is not served in time.
        RequestFailed: one is refused.
    """
    async with anyio.create_task_group() as tasks:
        for crd in crds:
            tasks.start_soon(_establish, admin, crd)


async def _establish(admin: Api, crd: Json) -> None:
    spec = crd["spec"]
    await admin.apply(crd)
    for version in spec["versions"]:
        if version["served"]:
            await _wait_for(admin, f"/apis/{spec['group']}/{version['name']}", spec["names"]["plural"])


async def _wait_for(admin: Api, group_version: str, plural: str) -> None:
    async def served() -> bool:
        path = f"{group_version}/{plural}"
        return await _is_discovered(admin, group_version, plural) and await _is_listed(admin, path)

    otherwise = f"{group_version}/{plural} is not served {_SECONDS:g} s after its CRD was applied."
    await poll_until(served, seconds=_SECONDS, otherwise=otherwise)


async def _is_discovered(admin: Api, group_version: str, plural: str) -> bool:
    answer = await admin.send("GET", group_version)
    return any(resource["name"] == plural for resource in answer.body.get("resources") or ())


async def _is_listed(admin: Api, path: str) -> bool:
    return (await admin.send("GET", path, query={"limit": "1"})).status == 200
