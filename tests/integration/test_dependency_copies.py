"""What a job needs comes along, on API servers and with their garbage collector."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import attrs
import pytest

from multikueue.core.model.dependencies import RESOURCE_CLAIM_TEMPLATE
from multikueue.core.model.kinds import CONFIG_MAP, JOB
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.errors import NotFound
from multikueue.kube import KubeClient
from multikueue.protocols import read
from multikueue.sandbox.setting_up import CHECK
from multikueued.rbac.rules import dependency_rules, on_worker
from multikueued.settings.sections import DependencyKind, DependencySettings
from tests.controlplane.polling import poll_until
from tests.integration.daemon import SETTINGS
from tests.integration.fleet import Fleet, fleet, job
from tests.integration.permissions import grant_daemon
from tests.integration.planes import WORKER_USER, Planes
from tests.integration.view import NAMESPACE

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]

KINDS: tuple[DependencyKind, ...] = ("ConfigMap", "ResourceClaimTemplate", "ServiceAccount")
COPYING = attrs.evolve(SETTINGS, dependencies=(DependencySettings(CHECK, KINDS),))
SETTINGS_MAP, GPU = ObjectKey(NAMESPACE, "job-settings"), ObjectKey(NAMESPACE, "job-gpu")


@asynccontextmanager
async def copying(planes: Planes) -> AsyncIterator[Fleet]:
    """A fleet that copies with the rights of the settings and no more; what it has made is removed everywhere."""
    await grant_daemon(planes.manager, dependency_rules(KINDS))
    for worker in planes.workers.values():
        await worker.service_account(WORKER_USER, on_worker(COPYING))
    async with fleet(planes, settings=COPYING) as real:
        try:
            yield real
        finally:
            for view in (real.manager, *real.workers.values()):
                for resource, key in ((CONFIG_MAP, SETTINGS_MAP), (RESOURCE_CLAIM_TEMPLATE, GPU)):
                    with suppress(NotFound):
                        await view.client.delete(resource, key)


def config_map(**data: str) -> Json:
    metadata = {"name": SETTINGS_MAP.name, "namespace": NAMESPACE}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    return {**made, "data": data, "binaryData": {"raw": "AAEC/w=="}}


def claim_template() -> Json:
    spec = {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu.example.com"}}]}}}
    gvk, metadata = RESOURCE_CLAIM_TEMPLATE.gvk, {"name": GPU.name, "namespace": NAMESPACE}
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "spec": spec}


def needing(name: str, **more: Any) -> Json:
    """A job whose pods mount the ConfigMap."""
    made = job(name)
    pod = made["spec"]["template"]["spec"]
    pod["volumes"] = [{"name": "settings", "configMap": {"name": SETTINGS_MAP.name}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "settings", "mountPath": "/settings"}]
    pod |= more
    return made


async def gone(clients: Sequence[KubeClient], resource: Resource, key: ObjectKey) -> None:
    async def look() -> bool:
        return [await read(client, resource, key) for client in clients] == [None] * len(clients)

    await poll_until(look, seconds=60, otherwise=f"{resource} {key} is not removed")


async def test_jobs_run_with_the_same_content_and_it_is_gone_after_the_last(planes: Planes) -> None:
    """A ConfigMap with text and bytes; a claim template to which the API server adds defaults."""
    async with copying(planes) as real:
        here, workers = real.manager.client, [view.client for view in real.workers.values()]
        original = await here.create(CONFIG_MAP, config_map(text="hello", empty=""))
        await here.create(RESOURCE_CLAIM_TEMPLATE, claim_template())
        await real.hold("worker2", on=True)
        claims = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": GPU.name}]}
        for name in ("first", "second"):
            await here.create(JOB, needing(name, **claims))
            assert await real.running(name) == "worker1"
        copy = await read(workers[0], CONFIG_MAP, SETTINGS_MAP) or {}
        assert (copy["data"], copy["binaryData"]) == (original["data"], original["binaryData"])
        assert len(await _owners(workers[0], CONFIG_MAP, SETTINGS_MAP, 4)) == 4
        assert len(await _owners(workers[0], RESOURCE_CLAIM_TEMPLATE, GPU, 4)) == 4
        for name in ("first", "second"):
            await real.finish(name)
        await real.cleaned()
        await gone(workers, CONFIG_MAP, SETTINGS_MAP)
        await gone(workers, RESOURCE_CLAIM_TEMPLATE, GPU)
        assert (await here.get(CONFIG_MAP, SETTINGS_MAP))["data"] == original["data"]


async def _owners(client: KubeClient, resource: Resource, key: ObjectKey, count: int) -> list[Json]:
    """Wait until an object has so many owners; return them."""
    owners: list[Json] = []

    async def look() -> bool:
        owners[:] = ((await read(client, resource, key)) or {"metadata": {}})["metadata"].get("ownerReferences", [])
        return len(owners) == count

    await poll_until(look, seconds=30, otherwise=f"{resource} {key} has not {count} owners")
    assert not any("controller" in owner or "blockOwnerDeletion" in owner for owner in owners)
    return owners
