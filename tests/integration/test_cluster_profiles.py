"""Workers of an inventory on real servers: ClusterProfiles, and the Secrets that their manager keeps for them."""

from __future__ import annotations

import base64
from contextlib import suppress

import attrs
import pytest

from multikueue.core.model.kinds import CLUSTER_PROFILE, CUSTOM_RESOURCE_DEFINITION, MULTIKUEUE_CLUSTER, SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.errors import NotFound
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE
from multikueued.settings.config import Settings
from multikueued.settings.profiles import (
    AccessProviderSettings,
    ClusterProfileSettings,
)
from tests.controlplane.crds import establish, read
from tests.controlplane.polling import poll_until
from tests.data.files import OCM_CRDS
from tests.integration.daemon import SETTINGS
from tests.integration.fleet import Fleet, fleet
from tests.integration.permissions import WORKER_RULES, chart_objects
from tests.integration.planes import WORKER_USER, Planes

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]

OCM = "open-cluster-management"


def allowing(*providers: AccessProviderSettings) -> Settings:
    return attrs.evolve(SETTINGS, cluster_profile=ClusterProfileSettings(providers))


async def grant(planes: Planes) -> None:
    """What the chart grants where the settings have the section."""
    for obj in chart_objects("rbac-profiles.yaml"):
        await planes.manager.admin.apply(obj)


async def install(planes: Planes) -> None:
    """Have the manager serve ClusterProfiles."""
    (definition,) = (crd for crd in read(OCM_CRDS) if crd["metadata"]["name"] == CLUSTER_PROFILE.qualified)
    await establish(planes.manager.admin, [definition])


async def uninstall(real: Fleet) -> None:
    """Have it serve none, as before anybody installed them."""
    key = ObjectKey("", CLUSTER_PROFILE.qualified)

    async def gone() -> bool:
        try:
            await real.manager.client.delete(CUSTOM_RESOURCE_DEFINITION, key)
        except NotFound:
            return True
        return False

    await poll_until(gone, seconds=20, otherwise="the definition of ClusterProfiles does not go")


async def by_profile(real: Fleet, worker: str) -> None:
    """Have a MultiKueueCluster name a profile, and remove its kubeconfig."""
    client, secret = real.manager.client, ObjectKey(KUEUE_NAMESPACE, f"{worker}-secret")
    source = {"clusterSource": {"clusterProfileRef": {"name": worker}, "kubeConfig": None}}
    await client.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", worker), {"spec": source})
    await client.delete(SECRET, secret)


async def add_profile(real: Fleet, planes: Planes, worker: str, provider: str = OCM) -> Json:
    """Put a worker into the inventory, as its manager does."""
    profile: Json = {
        "apiVersion": CLUSTER_PROFILE.gvk.api_version,
        "kind": CLUSTER_PROFILE.gvk.kind,
        "metadata": {"name": worker, "namespace": KUEUE_NAMESPACE},
        "spec": {"clusterManager": {"name": provider}},
    }
    made = await real.manager.client.create(CLUSTER_PROFILE, profile)
    cluster = dict(planes.workers[worker].kubeconfig(WORKER_USER)["clusters"][0]["cluster"])
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"clusterName": worker}}
    access = {"name": provider, "cluster": {**cluster, "extensions": [extension]}}
    patch = {"status": {"accessProviders": [access]}}
    return await real.manager.client.merge_patch(CLUSTER_PROFILE, ObjectKey.of(made), patch, subresource="status")


async def add_token(real: Fleet, planes: Planes, profile: Json) -> None:
    """Write the Secret that OCM's syncer writes: the profile owns it."""
    name = profile["metadata"]["name"]
    owner = {field: profile[field] for field in ("apiVersion", "kind")}
    owner |= {"name": name, "uid": profile["metadata"]["uid"], "controller": True}
    metadata = {"name": f"{name}-multikueue", "namespace": KUEUE_NAMESPACE, "ownerReferences": [owner]}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded(planes, name)}
    await real.manager.client.create(SECRET, secret)


def encoded(planes: Planes, worker: str) -> Json:
    token = planes.workers[worker].token(WORKER_USER)
    return {"token": base64.b64encode(token.encode()).decode()}


async def says(real: Fleet, worker: str, words: str) -> None:
    """Wait until a MultiKueueCluster is not Active and says this."""
    await real.changes.until(
        lambda: any(
            condition["type"] == "Active" and condition["status"] == "False" and words in condition["message"]
            for condition in dig(real.manager.get(MULTIKUEUE_CLUSTER, worker) or {}, "status", "conditions") or ()
        ),
        otherwise=lambda: f"{worker} does not say {words!r}: {real.story('')}",
    )


async def test_workers_of_an_inventory_run_jobs_and_their_tokens_are_replaced(planes: Planes) -> None:
    """Nothing of it is there when the daemon starts, the definition of ClusterProfiles neither."""
    await grant(planes)
    settings = allowing(AccessProviderSettings(OCM, builtin="cp-creds"))
    async with fleet(planes, daemon=False, settings=settings) as real:
        await uninstall(real)
        for worker in planes.workers:
            await by_profile(real, worker)
        real.daemon.start()
        await says(real, "worker1", "clusterprofiles.multicluster.x-k8s.io cannot be read: ")

        await install(planes)
        await says(real, "worker1", 'ClusterProfile.multicluster.x-k8s.io "worker1" not found')
        profiles = {worker: await add_profile(real, planes, worker) for worker in planes.workers}
        await says(real, "worker1", "failed to get secret kueue-system/worker1-multikueue")
        for profile in profiles.values():
            await add_token(real, planes, profile)
        await real.daemon.connected()
        worker = await real.run("first")

        await planes.workers[worker].service_account(WORKER_USER, WORKER_RULES)  # with a token of its own
        key = ObjectKey(KUEUE_NAMESPACE, f"{worker}-multikueue")
        await real.manager.client.merge_patch(SECRET, key, {"data": encoded(planes, worker)})
        await planes.workers[
            worker
        ].restart_apiserver()  # watches end by themselves within the hour; this ends them now
        await real.active(worker)

        await real.manager.client.delete(CLUSTER_PROFILE, ObjectKey.of(profiles[worker]))
        await says(real, worker, f'ClusterProfile.multicluster.x-k8s.io "{worker}" not found')
        another = await add_profile(real, planes, worker)
        await says(real, worker, f"failed to get secret kueue-system/{worker}-multikueue")  # it is the former one's
        with suppress(NotFound):  # the garbage collector may have been here, within a minute
            await real.manager.client.delete(SECRET, key)
        await add_token(real, planes, another)
        await real.active(worker)
        assert await real.running("first") == worker
        await real.finish("first")
        await real.cleaned()
        assert real.ran_on("first") == [worker]
