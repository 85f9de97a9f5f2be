"""A control plane serves its API to each user as far as RBAC lets it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import yaml
from kubernetes_asyncio import client, config

from tests.controlplane.api import Api
from tests.controlplane.errors import ControlPlaneError
from tests.controlplane.interface import Cluster, ClusterFactory

pytestmark = [pytest.mark.real, pytest.mark.timeout(120), pytest.mark.asyncio(loop_scope="module")]

_MAPS = "/api/v1/namespaces/default/configmaps"
_READ_MAPS = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}
_WRITE_MAPS = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "patch"]}


def _map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": "value"}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(clusters: ClusterFactory) -> AsyncIterator[Cluster]:
    """One plane for all tests of this module: each uses objects and users of its own."""
    async with clusters("access", users={"reader": [_READ_MAPS], "writer": [_WRITE_MAPS]}) as cluster:
        yield cluster


async def test_objects_can_be_created_read_changed_watched_and_deleted(plane: Cluster) -> None:
    made = await plane.admin.create(_map("crud"))
    assert made["metadata"]["uid"]
    await plane.admin.merge_patch(f"{_MAPS}/crud", {"data": {"key": "other"}})
    assert (await plane.admin.get(f"{_MAPS}/crud"))["data"] == {"key": "other"}
    events = await plane.admin.watch(_MAPS, resource_version=made["metadata"]["resourceVersion"])
    assert [(event["type"], event["object"]["data"]) for event in events] == [("MODIFIED", {"key": "other"})]
    await plane.admin.delete(f"{_MAPS}/crud")
    assert (await plane.admin.send("GET", f"{_MAPS}/crud")).status == 404


async def test_each_user_may_do_what_its_rules_say_and_nothing_else(plane: Cluster) -> None:
    async with plane.api("reader") as reader, plane.api("writer") as writer:
        assert (await reader.send("GET", _MAPS)).status == 200
        denied = await reader.send("POST", _MAPS, _map("denied"))
        assert denied.status == 403
        assert 'User "reader" cannot create resource "configmaps"' in denied.body["message"]
        assert (await writer.send("POST", _MAPS, _map("allowed"))).status == 201
        assert (await writer.send("GET", _MAPS)).status == 403


async def test_a_later_grant_replaces_the_rules_at_once(plane: Cluster) -> None:
    await plane.service_account("changing", [_READ_MAPS])
    async with plane.api("changing") as changing:
        assert (await changing.send("GET", _MAPS)).status == 200
        await plane.grant("changing", [_WRITE_MAPS])
        assert (await changing.send("GET", _MAPS)).status == 403
        assert (await changing.send("POST", _MAPS, _map("changed"))).status == 201


async def test_a_wrong_token_is_unauthorized_and_a_wrong_authority_is_not_trusted(plane: Cluster) -> None:
    async with Api(plane.url, plane.ca_pem, "wrong") as stranger:
        assert (await stranger.send("GET", _MAPS)).status == 401
    from trustme import CA

    async with Api(plane.url, CA().cert_pem.bytes().decode(), plane.token()) as distrustful:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await distrustful.send("GET", _MAPS)


async def test_an_unknown_user_is_named_with_the_known_ones(plane: Cluster) -> None:
    with pytest.raises(ControlPlaneError, match="access has no user 'nobody', only admin"):
        plane.kubeconfig("nobody")


async def test_another_client_gets_in_with_the_kubeconfig(plane: Cluster) -> None:
    settings = client.Configuration()
    document = yaml.safe_load(yaml.safe_dump(plane.kubeconfig("reader")))
    await config.load_kube_config_from_dict(document, client_configuration=settings)
    async with client.ApiClient(settings) as api:
        assert (await client.CoreV1Api(api).list_namespaced_config_map("default")).items is not None


async def test_a_service_accounts_token_is_refused_soon_after_it_is_revoked(plane: Cluster) -> None:
    await plane.service_account("leaver", [_READ_MAPS])
    async with plane.api("leaver") as leaver:
        assert (await leaver.send("GET", _MAPS)).status == 200
        await plane.revoke("leaver")
        assert (await leaver.send("GET", _MAPS)).status == 401
    with pytest.raises(ControlPlaneError):
        plane.token("leaver")
