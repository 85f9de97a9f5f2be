"""Token Secrets of service accounts: filled in, and void once they are gone."""

from __future__ import annotations

import base64

import anyio
import pytest

from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import Unauthorized
from multikueue.kube import ClusterConfig, KubeClient
from multikueue.protocols import ApiClient
from multikueue.sandbox import Sandbox, SandboxOptions
from multikueue.sandbox.tokens import SERVICE_ACCOUNT
from multikueue.testing import until

KEY = ObjectKey("default", "robot-token")
ACCOUNT: Json = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "default"}}
TOKEN: Json = {
    "apiVersion": "v1",
    "kind": "Secret",
    "type": "kubernetes.io/service-account-token",
    "metadata": {
        "name": KEY.name,
        "namespace": KEY.namespace,
        "annotations": {"kubernetes.io/service-account.name": "robot"},
    },
}


async def test_a_token_is_made_for_an_account_and_ends_with_its_secret() -> None:
    async with Sandbox(workers=1, options=SandboxOptions(connect=False)) as sandbox:
        cluster = sandbox.workers["worker1"]
        admin = cluster.client("admin")
        await admin.create(SERVICE_ACCOUNT, ACCOUNT)
        await admin.create(SECRET, TOKEN)
        data = await _filled(admin)
        token = base64.b64decode(data["token"]).decode()
        authority = base64.b64decode(data["ca.crt"]).decode()
        assert cluster.server.access.user_of(token) == "system:serviceaccount:default:robot"

        config = ClusterConfig(cluster.server.url, ca_pem=authority, token=token)
        async with KubeClient(config, name="robot") as client:
            assert (await client.list(SECRET, namespace="default")).items
            await admin.delete(SECRET, KEY)
            await until(lambda: cluster.server.access.user_of(token) is None)
            with pytest.raises(Unauthorized):
                await client.list(SECRET, namespace="default")


async def _filled(client: ApiClient) -> Json:
    """The Secret's data, once it has some."""
    with anyio.fail_after(10):
        while True:
            if data := (await client.get(SECRET, KEY)).get("data"):
                return dict(data)
            await anyio.sleep(0.01)
