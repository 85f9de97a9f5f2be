"""Discovery of the kinds that an API server serves."""

from __future__ import annotations

import attrs
import orjson
import pytest

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import GVK, Json
from multikueue.errors import Unauthorized
from multikueue.kube import KubeClient, parse_worker_kubeconfig
from multikueue.kube.served_kinds import ServedKind, published_schema, served
from multikueue.sandbox.apiserver import ApiServer, DirectClient
from multikueue.sandbox.crds import load_crds
from tests.kube.scripted import talking

WIDGET = GVK("example.com", "v1", "Widget")
LISTED: Json = {
    "kind": "APIResourceList",
    "resources": [
        {"name": "widgets/status", "kind": "Widget", "namespaced": True},
        {"name": "widgets", "kind": "Widget", "namespaced": True},
        {"name": "widgets/scale", "kind": "Scale", "namespaced": True},
        {"name": "shops", "kind": "Shop", "namespaced": False},
    ],
}


def test_a_kind_is_found_with_its_subresources() -> None:
    assert served(LISTED, WIDGET) == ServedKind("widgets", True, frozenset(("status", "scale")))
    assert served(LISTED, GVK("example.com", "v1", "Shop")) == ServedKind("shops", False, frozenset())


@pytest.mark.parametrize("listed", [{}, {"resources": None}, {"resources": ["x"]}, {"resources": [{"kind": "Widget"}]}])
def test_what_is_not_listed_is_not_served(listed: Json) -> None:
    assert served(listed, WIDGET) is None
    assert served(LISTED, GVK("example.com", "v1", "widget")) is None


@pytest.mark.parametrize("name", ["", "../../secrets", "wid gets", "widgets?x", "wid\u202egets", "Widgets", "widgets."])
def test_a_name_that_no_server_gives_is_not_served(name: str) -> None:
    assert served({"resources": [{"name": name, "kind": "Widget", "namespaced": True}]}, WIDGET) is None


async def test_a_kind_that_nobody_can_serve_is_not_asked_about() -> None:
    """Whoever may create pods on a worker can name such an owner: the other pods must still be found."""
    async with talking() as (_, client):
        assert await client.discover(GVK("..", "v1", "Widget")) is None
        assert await client.discover(GVK("example.com", "", "Widget")) is None


async def test_a_server_is_asked_by_group_and_version() -> None:
    async with ApiServer("plain", tokens={"t": "somebody"}) as server:
        config = parse_worker_kubeconfig(orjson.dumps(server.kubeconfig("somebody")))
        async with KubeClient(config, name="plain") as client:
            job = await client.discover(GVK("batch", "v1", "Job"))

            assert job == ServedKind("jobs", True, frozenset(("status",)))
            assert await client.discover(GVK("", "v1", "Namespace")) == ServedKind(
                "namespaces", False, frozenset(("status", "finalize"))
            )
            assert await client.discover(GVK("batch", "v2", "Job")) is None
            assert await client.discover(GVK("example.com", "v1", "Widget")) is None

        async with KubeClient(attrs.evolve(config, token="not ours"), name="plain") as stranger:
            with pytest.raises(Unauthorized):
                await stranger.discover(WIDGET)


async def test_the_schema_of_a_kind_is_read() -> None:
    """Over HTTP and in memory."""
    server = ApiServer("plain", tokens={"t": "somebody"})
    for definition in load_crds():
        server.registry.create_object(definition)
    async with server:
        config = parse_worker_kubeconfig(orjson.dumps(server.kubeconfig("somebody")))
        async with KubeClient(config, name="plain") as client:
            schema = await client.schema(WORKLOAD.gvk)
            assert schema is not None
            assert "preemptionGates" in schema["properties"]["spec"]["properties"]
            in_memory = await DirectClient(server, user="somebody").schema(WORKLOAD.gvk) or {}
            assert in_memory == {field: value for field, value in schema.items() if field in in_memory}
            assert await client.schema(WIDGET) is None
            assert await client.schema(GVK(WORKLOAD.gvk.group, WORKLOAD.gvk.version, "Widget")) is None


@pytest.mark.parametrize("document", [{}, {"components": {"schemas": ["x"]}}, {"components": {"schemas": {"a": "x"}}}])
def test_a_document_of_another_form_publishes_nothing(document: Json) -> None:
    assert published_schema(document, WIDGET) is None
