"""The definitions of Open Cluster Management's kinds: those of `tests/data` unchanged, and the written ones usable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.errors import Invalid
from multikueue.sandbox.apiserver.direct import DirectClient
from multikueue.sandbox.apiserver.verbs.registry import Registry
from multikueue.sandbox.crds import install_ocm, load_ocm_crds
from tests.controlplane.crds import read
from tests.data.files import OCM_CRDS

OURS = {crd["metadata"]["name"]: crd for crd in load_ocm_crds()}
REAL = {crd["metadata"]["name"]: crd for crd in read(OCM_CRDS)}
ACCOUNT = Resource(
    GVK("authentication.open-cluster-management.io", "v1beta1", "ManagedServiceAccount"), "managedserviceaccounts"
)
PROFILE = Resource(GVK("multicluster.x-k8s.io", "v1alpha1", "ClusterProfile"), "clusterprofiles")


def server() -> DirectClient:
    registry = Registry()
    install_ocm(registry)
    return DirectClient(registry)


def made(resource: Resource, **fields: Any) -> Json:
    head = {"apiVersion": resource.gvk.api_version, "kind": resource.gvk.kind}
    return {**head, "metadata": {"name": "one", "namespace": "default"}, **fields}


@pytest.mark.parametrize("name", sorted(REAL))
def test_what_the_projects_publish_is_served_as_it_is(name: str) -> None:
    assert OURS[name]["spec"] == REAL[name]["spec"]


def test_each_file_has_the_plural_of_its_kind_and_serves_one_version_with_a_status() -> None:
    folder = Path(__file__).parents[2] / "multikueue" / "sandbox" / "crds" / "ocm"
    assert {path.stem for path in folder.glob("*.yaml")} == {crd["spec"]["names"]["plural"] for crd in OURS.values()}
    for crd in OURS.values():
        (version,) = crd["spec"]["versions"]
        assert version["subresources"] == {"status": {}}


def test_definitions_can_be_installed_twice() -> None:
    registry = Registry()
    install_ocm(registry)
    install_ocm(registry)


async def test_a_token_lasts_a_year_and_is_rotated_unless_somebody_says_otherwise() -> None:
    created = await server().create(ACCOUNT, made(ACCOUNT, spec={"rotation": {}}))
    assert created["spec"]["rotation"] == {"enabled": True, "validity": "8640h0m0s"}


async def test_the_manager_of_a_profile_cannot_be_changed() -> None:
    client = server()
    await client.create(PROFILE, made(PROFILE, spec={"clusterManager": {"name": "ocm"}}))
    with pytest.raises(Invalid, match="ClusterManager is immutable"):
        await client.merge_patch(
            PROFILE, ObjectKey("default", "one"), {"spec": {"clusterManager": {"name": "another"}}}
        )


async def test_an_extension_of_an_access_provider_is_an_object() -> None:
    client = server()
    await client.create(PROFILE, made(PROFILE, spec={"clusterManager": {"name": "ocm"}}))

    async def write(extension: Any) -> None:
        cluster = {"server": "https://x", "extensions": [{"name": "n", "extension": extension}]}
        status = {"accessProviders": [{"name": "ocm", "cluster": cluster}]}
        await client.merge_patch(PROFILE, ObjectKey("default", "one"), {"status": status}, subresource="status")

    await write({"clusterName": "one"})
    with pytest.raises(Invalid, match="extension"):
        await write(["--an-argument"])
