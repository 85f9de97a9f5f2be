"""A sandbox whose manager is a hub: over HTTPS, with the tokens that the hub has got."""

from __future__ import annotations

import base64
from contextlib import suppress

import anyio
import pytest

from multikueue.core.model.kinds import JOB, NAMESPACE, SECRET
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import dig
from multikueue.errors import Forbidden, NotFound
from multikueue.kube import ClusterConfig, KubeClient
from multikueue.protocols import ApiClient
from multikueue.sandbox import Sandbox, SandboxOptions
from multikueue.sandbox.objects import built
from multikueue.sandbox.ocm.kinds import ACCOUNT, PERMISSION, PLACEMENT, PROFILE, SYNC_LABEL


async def there(client: ApiClient, resource: Resource, key: ObjectKey, *path: str) -> Json:
    """An object, once it is there and has that field."""
    with anyio.fail_after(30):
        while True:
            with suppress(NotFound):
                found = await client.get(resource, key)
                if not path or dig(found, *path):
                    return found
            await anyio.sleep(0.01)


async def test_a_worker_is_reached_by_its_profile_and_the_copied_token() -> None:
    options = SandboxOptions(ocm=True, join=False, roles=True)
    async with Sandbox(workers=2, options=options) as sandbox:
        hub = sandbox.manager.client("admin")
        account = built(ACCOUNT, "multikueue", "worker1", labels={SYNC_LABEL: "true"}, spec={"rotation": {}})
        rules = [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list"]}]
        subject = {"kind": "ManagedServiceAccount", "name": "multikueue"}
        spec = {"clusterRole": {"rules": rules}, "clusterRoleBinding": {"subject": subject}}
        await there(hub, NAMESPACE, ObjectKey("", "worker1"))
        await hub.create(ACCOUNT, account)
        await hub.create(PERMISSION, built(PERMISSION, "multikueue", "worker1", spec=spec))
        await hub.create(PLACEMENT, built(PLACEMENT, "all", "kueue-system", spec={}))

        profile = await there(hub, PROFILE, ObjectKey("kueue-system", "worker1"), "status", "accessProviders")
        secret = await there(hub, SECRET, ObjectKey("kueue-system", "worker1-multikueue"))
        await there(hub, PERMISSION, ObjectKey("worker1", "multikueue"), "status", "conditions")
        (provider,) = profile["status"]["accessProviders"]
        authority = base64.b64decode(provider["cluster"]["certificate-authority-data"]).decode()
        token = base64.b64decode(secret["data"]["token"]).decode()
        config = ClusterConfig(provider["cluster"]["server"], ca_pem=authority, token=token)
        async with KubeClient(config, name="worker1") as client:
            assert (await client.list(JOB)).items == []
            with pytest.raises(Forbidden):
                await client.list(SECRET)
        placement = await there(hub, PLACEMENT, ObjectKey("kueue-system", "all"), "status", "numberOfSelectedClusters")
        assert placement["status"]["numberOfSelectedClusters"] == 2
