"""The server's life: start, access, stop."""

from __future__ import annotations

import re
import ssl
import subprocess
import sys

import aiohttp
import anyio
import pytest

from multikueue.core.model.names import Json
from multikueue.errors import SandboxError
from multikueue.sandbox import Sandbox
from multikueue.sandbox.apiserver import ApiServer
from multikueue.sandbox.apiserver.encoding import repeated_fields
from tests.sandbox.apiserver.objects import config_map, job

TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}


async def test_https_with_a_token_from_the_kubeconfig() -> None:
    """The kubeconfig is all a client needs, and it works for kubernetes_asyncio as it is."""
    from kubernetes_asyncio import client, config

    async with ApiServer("worker1", tokens={"t1": "admin"}) as server:
        configuration = client.Configuration()
        await config.load_kube_config_from_dict(server.kubeconfig(), client_configuration=configuration)
        async with client.ApiClient(configuration) as api:
            namespaces = await client.CoreV1Api(api).list_namespace()
        assert "default" in [item.metadata.name for item in namespaces.items or []]
        assert server.requests["admin", "list", "namespaces"] == 1


async def test_tokens_come_and_go_while_it_runs() -> None:
    """A revoked token is a 401 at once, a new one works at once."""
    async with (
        ApiServer("a", tls=False, tokens={"old": "admin"}) as server,
        aiohttp.ClientSession(server.url) as session,
    ):

        async def code(token: str) -> int:
            headers = {"Authorization": f"Bearer {token}"}
            async with session.get("/api/v1/namespaces", headers=headers) as response:
                return response.status

        assert [await code("old"), await code("new")] == [200, 401]
        assert server.tokens is not None
        del server.tokens["old"]
        server.tokens["new"] = "admin"
        assert [await code("old"), await code("new")] == [401, 200]


def test_a_kubeconfig_needs_a_token() -> None:
    """The message says what to do, and holds no token."""
    server = ApiServer("a", tokens={"secret-token": "admin"})
    with pytest.raises(SandboxError, match="no token for user 'nobody'") as caught:
        server.kubeconfig("nobody")
    assert "secret-token" not in str(caught.value)


def test_a_client_of_nobody_is_refused_when_it_is_made() -> None:
    """Else each of its calls would be, and an informer asks again and again without a word."""
    manager = Sandbox().manager
    with pytest.raises(SandboxError, match="no token for user 'ocm': its users are admin, multikueue, kueue"):
        manager.client("ocm")
    assert manager.server.tokens is not None
    manager.server.tokens["other"] = "ocm"
    assert "ocm" in repr(manager.client("ocm"))


def test_a_cluster_that_is_not_there_is_named() -> None:
    with pytest.raises(SandboxError, match="no cluster 'worker3': there are manager, worker1, worker2"):
        Sandbox().configuration("worker3")


async def test_a_taken_port_is_one_clear_message() -> None:
    """It names the cluster, the address, and what to do."""
    async with ApiServer("first", tls=False) as first:
        with pytest.raises(SandboxError, match=f"'second' cannot listen on 127.0.0.1:{first.port}"):
            async with ApiServer("second", port=first.port):
                raise AssertionError("it started")


@pytest.mark.parametrize("validation", ["", "Strict", "Ignore"])
async def test_a_field_that_stands_twice_is_told_or_refused(validation: str) -> None:
    """The last one counts. Whoever reads no headers learns it by fieldValidation=Strict."""
    body = '{"metadata": {"name": "a", "name": "b"}, "data": {"x": "1", "y": "2", "x": "3"}}'
    async with ApiServer("a", tls=False) as server, aiohttp.ClientSession(server.url) as session:
        where = f"/api/v1/namespaces/default/configmaps?fieldValidation={validation}"
        async with session.post(where, data=body, headers={"Content-Type": "application/json"}) as response:
            answer, warnings = await response.json(), response.headers.getall("Warning", [])
    if validation == "Strict":
        why = 'strict decoding error: duplicate field "metadata.name", duplicate field "data.x"'
        assert (response.status, answer["message"]) == (400, why)
        return
    assert (response.status, answer["metadata"]["name"], answer["data"]) == (201, "b", {"x": "3", "y": "2"})
    duplicates = [f'299 - "duplicate field \\"{field}\\""' for field in ("metadata.name", "data.x")]
    assert warnings == ([] if validation == "Ignore" else duplicates)


def test_bodies_that_are_no_objects_have_no_field_twice() -> None:
    assert repeated_fields(b'[{"a": 1, "a": 2}, 3]') == ["[0].a"]
    assert [repeated_fields(raw) for raw in (b"3", b"{", b"[" * 100_000)] == [[], [], []]


async def test_errors_of_the_body_come_out_as_they_are() -> None:
    """Not wrapped in a group by the server's own tasks."""
    with pytest.raises(KeyError):
        async with ApiServer("a", tls=False):
            raise KeyError("mine")


async def test_it_stops_at_once_with_watches_and_hanging_requests_open() -> None:
    """No client can keep it from stopping, and nobody waits for a timeout."""
    with anyio.fail_after(3):
        async with aiohttp.ClientSession() as session, ApiServer("a", tls=False) as server:
            server.registry.create_object(config_map("a"))
            url = server.url + "/api/v1/configmaps"
            async with session.get(url, params={"watch": "true"}) as response:
                assert await response.content.readline()


async def test_an_event_for_a_watch_whose_client_has_just_left_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    """It happens whenever a demo is stopped; a traceback of it would look like a failure."""
    async with ApiServer("a", tls=False) as server, aiohttp.ClientSession(server.url) as session:
        server.registry.create_object(config_map("a"))
        async with session.get("/api/v1/configmaps", params={"watch": "true"}) as response:
            assert await response.content.readline()
            server.registry.create_object(config_map("b"))
            server.drop_connections()
            with pytest.raises(aiohttp.ClientError):
                await response.content.read()

    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


async def test_other_clients_trust_only_its_own_authority() -> None:
    """Each server has a CA of its own."""
    async with ApiServer("a") as first, ApiServer("b") as second, aiohttp.ClientSession() as session:
        trusted = ssl.create_default_context(cadata=first.ca_pem)
        async with session.get(first.url + "/version", ssl=trusted) as response:
            assert response.status == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(second.url + "/version", ssl=trusted)


async def get_json(session: aiohttp.ClientSession, path: str, **options: str) -> Json:
    async with session.get(path, headers=TABLE, params=options) as response:
        body: Json = await response.json(content_type=None)
        return body


async def test_kubectl_get_watch_gets_tables() -> None:
    """Each event of a watch is a table of one row, and only the first one repeats the columns."""
    async with ApiServer("a", tls=False) as server, aiohttp.ClientSession(server.url) as session:
        for name in ("j1", "j2"):
            server.registry.create_object(job(name))
        path, seen = "/apis/batch/v1/namespaces/default/jobs", []
        table = await get_json(session, path)
        assert [column["name"] for column in table["columnDefinitions"][:5]] == [
            "Name",
            "Status",
            "Completions",
            "Duration",
            "Age",
        ]
        async with session.get(path, headers=TABLE, params={"watch": "true"}) as response:
            for _ in range(2):
                seen.append((await response.content.readline()).decode())
        assert all('"kind":"Table"' in line for line in seen)
        assert ['"columnDefinitions":[]' in line for line in seen] == [False, True]


async def test_who_takes_only_protobuf_is_told_so() -> None:
    """The server reads it, but writes JSON; Go clients take both."""
    async with ApiServer("a", tls=False) as server, aiohttp.ClientSession(server.url) as session:
        for accept, code in (
            ("application/vnd.kubernetes.protobuf", 406),
            ("application/vnd.kubernetes.protobuf,application/json", 200),
            ("application/vnd.kubernetes.protobuf, */*", 200),
        ):
            async with session.get("/api/v1/namespaces/default", headers={"Accept": accept}) as response:
                assert response.status == code
                assert (await response.json())["kind"] == ("Status" if code == 406 else "Namespace")


@pytest.mark.parametrize("place", ["api/v1", "apis/batch/v1", "apis/apiextensions.k8s.io/v1", "apis/events.k8s.io/v1"])
async def test_openapi_describes_builtin_kinds_with_all_they_refer_to(place: str) -> None:
    """What `kubectl explain` reads: the kinds by their names, fields with descriptions, no reference into nowhere."""
    async with ApiServer("a", tls=False) as server, aiohttp.ClientSession(server.url) as session:
        async with session.get(f"/openapi/v3/{place}") as response:
            text = await response.text()
        schemas = (await response.json())["components"]["schemas"]

    assert set(re.findall(r'"#/components/schemas/([^"]+)"', text)) <= set(schemas)
    kinds = [schema for schema in schemas.values() if "x-kubernetes-group-version-kind" in schema]
    assert kinds
    assert all(schema["description"] and schema["properties"] for schema in kinds)


async def test_openapi_describes_every_group_that_it_lists() -> None:
    """`multikueue rbac manager | kubectl apply -f -` failed at the policies: of these no schema was packaged."""
    async with ApiServer("a", tls=False) as server, aiohttp.ClientSession(server.url) as session:
        async with session.get("/openapi/v3") as response:
            places = (await response.json())["paths"]
        for place in places:
            async with session.get(f"/openapi/v3/{place}") as response:
                assert response.status == 200, place


def test_a_server_reads_its_big_tables_when_they_are_asked_for() -> None:
    """Simulations start thousands of servers; few of them are asked what a field means."""
    script = """
from multikueue.sandbox.apiserver import ApiServer
from multikueue.sandbox.apiserver.kinds import builtin_openapi
from multikueue.sandbox.apiserver.protobuf import decoding
ApiServer("a")
assert builtin_openapi._document.cache_info().misses == decoding._table.cache_info().misses == 0
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("path", ["/openapi/v3/apis/batch/v1", "/openapi/v3/api/v1", "/openapi/v2"])
async def test_openapi_tells_kubectl_that_the_server_validates(path: str) -> None:
    """Version 3 lists `fieldValidation` among the parameters of a patch, version 2 the kinds."""
    async with ApiServer("a", tls=False) as server, aiohttp.ClientSession(server.url) as session:
        async with session.get(path) as response:
            document = await response.json()
        if path.endswith("v2"):
            assert "batch.v1.Job" in document["definitions"]
            return
        for operations in document["paths"].values():
            assert "fieldValidation" in [entry["name"] for entry in operations["patch"]["parameters"]]
