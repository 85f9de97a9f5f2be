"""Managers and workers with different versions of Kueue, as far as their definitions and images tell them apart."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import anyio
import attrs
import pytest

from multikueue.core.model.conditions import condition
from multikueue.core.model.kinds import DEPLOYMENT, MULTIKUEUE_CLUSTER, WORKLOAD
from multikueue.core.model.labels import PREEMPTION_GATE
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, name_of
from multikueue.core.model.worker_kueue import GATES, KUEUE, Version
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE, namespace
from multikueued.rbac.rules import ON_WORKER
from multikueued.settings.config import PreemptionSettings
from tests.controlplane.crds import establish
from tests.controlplane.interface import Cluster
from tests.controlplane.polling import poll_until
from tests.integration.daemon import SETTINGS
from tests.integration.fleet import Fleet, fleet
from tests.integration.permissions import WORKER_RULES
from tests.integration.planes import WORKER_USER, Planes, kueue_crds
from tests.integration.view import NAMESPACE
from tests.kueue_versions import definitions_of, deployment_of

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]

ORCHESTRATED = attrs.evolve(SETTINGS, preemption=PreemptionSettings(orchestrated=True))
LACKS = {
    (0, 15): f"Kueue 0.15 there lacks {GATES} (it preempts at once",
    (0, 17): "Kueue 0.17 there lacks names of Workloads over 63 characters",
    (0, 19): "",
}


async def install(plane: Cluster, version: Version) -> None:
    """Have a cluster serve what a version of Kueue serves, and show that version's image."""
    await plane.admin.apply(namespace(KUEUE_NAMESPACE))
    await plane.admin.apply(deployment_of(version))
    crds = [crd for crd in definitions_of(version, kueue_crds()) if crd["spec"]["names"]["kind"] == "Workload"]
    await establish(plane.admin, crds)
    sent: Json = {
        "apiVersion": WORKLOAD.gvk.api_version,
        "kind": "Workload",
        "metadata": {"name": "asked", "namespace": NAMESPACE},
        "spec": {
            "preemptionGates": [{"name": PREEMPTION_GATE}],
            "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": []}}}],
        },
    }
    path = f"/apis/{WORKLOAD.gvk.api_version}/namespaces/{NAMESPACE}/workloads"

    async def in_force() -> bool:
        stored = await plane.admin.call("POST", path, sent, query={"dryRun": "All"})
        return bool(dig(stored, "spec", "preemptionGates")) is (version > (0, 15))

    await poll_until(in_force, seconds=60.0, otherwise=f"{plane.name} does not serve the definitions of {version}")


@asynccontextmanager
async def installed(planes: Planes, versions: Mapping[str, Version]) -> AsyncIterator[None]:
    """These versions on these clusters meanwhile."""
    async with anyio.create_task_group() as tasks:
        for plane in planes.all:
            tasks.start_soon(install, plane, versions[plane.name])
    for worker in planes.workers.values():
        await worker.grant(WORKER_USER, [*WORKER_RULES, *ON_WORKER["diagnose"]])
    try:
        yield
    finally:
        async with anyio.create_task_group() as tasks:
            for plane in planes.all:
                tasks.start_soon(install, plane, (0, 19))
        for plane in planes.all:
            path = f"/apis/apps/v1/namespaces/{KUEUE_NAMESPACE}/{DEPLOYMENT.plural}"
            await plane.admin.call("DELETE", f"{path}/{deployment_of((0, 19))['metadata']['name']}")


async def _runs_on(real: Fleet, worker: str, version: Version) -> None:
    """A job runs there, ends, and leaves nothing; what its Kueue lacks is said."""
    others = [name for name in real.workers if name != worker]
    for other in others:
        await real.hold(other, on=True)
    name = f"on-{worker}"
    await real.submit(name)
    assert await real.running(name) == worker
    copy = real.workers[worker].last[WORKLOAD, name_of(real.manager.workload_of(name) or {})]
    assert bool(dig(copy, "spec", "preemptionGates")) is (version > (0, 15))
    await real.delete(name)
    await real.cleaned()
    said = condition(real.manager.get(MULTIKUEUE_CLUSTER, worker) or {}, KUEUE) or {}
    assert said.get("message", "").startswith(LACKS[version])
    assert bool(said) is bool(LACKS[version])
    for other in others:
        await real.hold(other, on=False)


@pytest.mark.parametrize("version", [(0, 15), (0, 17), (0, 19)], ids=["0.15", "0.17", "0.19"])
@pytest.mark.parametrize("others", [((0, 15), (0, 17)), ((0, 19), (0, 15))], ids=["0.15 and 0.17", "0.19 and 0.15"])
async def test_a_manager_and_workers_of_any_two_versions(
    planes: Planes, version: Version, others: tuple[Version, Version]
) -> None:
    """From the offer to the end, with orchestrated preemption; nobody counts a worker as gated that drops gates."""
    versions = dict(zip(planes.workers, others, strict=True))
    async with installed(planes, {"manager": version, **versions}), fleet(planes, settings=ORCHESTRATED) as real:
        for worker, its in versions.items():
            await _runs_on(real, worker, its)
