"""A manager and workers whose definitions of a kind are of different age: the API server keeps what it knows."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import clone, dig
from multikueue.protocols import Subresource
from multikueue.sandbox.apiserver import DirectClient, Registry
from tests.kinds import sandbox_ground
from tests.kinds.cases import cases

pytestmark = pytest.mark.looptime


def _without(crds: list[Json], name: str, field: str) -> list[Json]:
    changed: list[Json] = clone(crds)
    for crd in changed:
        if crd["metadata"]["name"] == name:
            for version in crd["spec"]["versions"]:
                properties = dig(version, "schema", "openAPIV3Schema", "properties")
                del properties["status"]["properties"][field]
    return changed


@pytest.mark.parametrize(
    ("older", "framework", "name", "field"),
    [
        ("worker", "rayjob", "rayjobs.ray.io", "failed"),
        ("manager", "rayjob", "rayjobs.ray.io", "endTime"),
        ("manager", "mpijob", "mpijobs.kubeflow.org", "completionTime"),
    ],
)
async def test_a_status_the_manager_keeps_only_in_part_is_written_once_and_holds_nothing_up(
    older: str, framework: str, name: str, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copies stayed for ever, and the same patch was sent each minute: every answer to it was 200."""
    registry, patch, sent = sandbox_ground._registry, DirectClient.merge_patch, []

    def aged(cluster: str, crds: list[Json]) -> Registry:
        return registry(cluster, _without(crds, name, field) if cluster.startswith(older) else crds)

    async def spied(
        client: DirectClient, resource: Resource, key: ObjectKey, body: Json, *, subresource: Subresource = ""
    ) -> Any:
        sent.append((resource.qualified, repr(body)))
        return await patch(client, resource, key, body, subresource=subresource)

    monkeypatch.setattr(sandbox_ground, "_registry", aged)
    monkeypatch.setattr(DirectClient, "merge_patch", spied)
    case = next(case for case in cases() if case.name == framework)
    async with sandbox_ground.sandbox_ground(case) as ground:
        await ground.submit(case.kind, "s")
        await ground.ended(case.kind, "s", "Succeeded")
        await anyio.sleep(600)
        assert not ground.copies(case.kind, "s")
    of_jobs = [body for resource, body in sent if resource == name]
    assert len(of_jobs) == len(set(of_jobs)) < 10
