"""How commands reach a worker: with the token that the manager holds for its ClusterProfile."""

from __future__ import annotations

import base64

import pytest

from multikueue.core.config.profile_secrets import SYNCED_LABEL
from multikueue.core.model.kinds import CLUSTER_PROFILE, NAMESPACE, SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.sandbox.apiserver import ApiServer, DirectClient
from multikueue.sandbox.crds import install_ocm
from multikueued.clusters import Lack, NoAccess, access_to

KEY = ObjectKey("kueue-system", "oslo")
CLUSTER: Json = {"metadata": {"name": "oslo"}, "spec": {"clusterSource": {"clusterProfileRef": {"name": "oslo"}}}}
CONFIG = {"name": "client.authentication.k8s.io/exec", "extension": {"clusterName": "oslo"}}
REACHED = {"server": "https://oslo:6443", "certificate-authority-data": "", "extensions": [CONFIG]}


@pytest.fixture
async def manager() -> DirectClient:
    server = ApiServer("manager")
    install_ocm(server.registry)
    client = DirectClient(server)
    await client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}})
    metadata = {"name": "oslo", "namespace": "kueue-system"}
    spec = {"displayName": "oslo", "clusterManager": {"name": "open-cluster-management"}}
    made = {"apiVersion": CLUSTER_PROFILE.gvk.api_version, "kind": "ClusterProfile", "metadata": metadata, "spec": spec}
    await client.create(CLUSTER_PROFILE, made)
    providers = {"accessProviders": [{"name": "open-cluster-management", "cluster": REACHED}]}
    await client.merge_patch(CLUSTER_PROFILE, KEY, {"status": providers}, subresource="status")
    return client


async def with_token(client: DirectClient, account: str, cluster: str = "oslo") -> None:
    name = f"{cluster}-{account}"
    metadata = {"name": name, "namespace": "kueue-system", "labels": {SYNCED_LABEL: name}}
    data = {"token": base64.b64encode(f"of-{account}".encode()).decode()}
    await client.create(SECRET, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})


@pytest.mark.parametrize("account", ["multikueue", "of-our-own"])
async def test_the_account_is_the_one_whose_token_there_is(manager: DirectClient, account: str) -> None:
    """`managedServiceAccount` of the daemon's settings names it, which commands do not read."""
    await with_token(manager, account)
    await with_token(manager, "multikueue", cluster="bergen")
    assert (await access_to(manager, CLUSTER, "kueue-system")).config.token == f"of-{account}"


async def test_of_several_accounts_only_the_daemon_knows_its_own(manager: DirectClient) -> None:
    """A wrong one has other rights: `doctor` said that the worker lets us create nothing, beside `Connected`."""
    for account in ("multikueue", "of-our-own"):
        await with_token(manager, account)
    with pytest.raises(NoAccess, match="tokens of several accounts \\(multikueue, of-our-own\\)") as caught:
        await access_to(manager, CLUSTER, "kueue-system")
    assert caught.value.lack is Lack.ELSEWHERE
