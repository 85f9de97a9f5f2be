"""How the server shows itself to kubelets, and `nodes/proxy`; the rest is in `tests/conformance/test_kubelets.py`."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import attrs

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver import ApiServer
from multikueue.sandbox.apiserver.verbs.updating import Target
from multikueue.testing import until
from tests.conformance.kubelet import PlayedKubelet, played_kubelet

TRUSTED = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "default"},
    "spec": {"nodeName": "n", "containers": [{"name": "main", "image": "x"}]},
}


@attrs.frozen
class Place:
    """A server, a session with it, and a kubelet of its node `n` that asks for certificates as the server says."""

    server: ApiServer
    session: aiohttp.ClientSession
    kubelet: PlayedKubelet

    async def get(self, path: str) -> Json:
        """The object at a path."""
        async with self.session.get(path) as response:
            body: Json = await response.json()
            return body


@asynccontextmanager
async def place() -> AsyncIterator[Place]:
    """A place with the pod `a` on the node."""
    async with ApiServer("a", tokens={"t": "admin"}) as server:
        server.access.enforce_roles()
        trusted = ssl.create_default_context(cadata=server.ca_pem)
        headers = {"Authorization": "Bearer t"}
        async with (
            aiohttp.ClientSession(
                server.url, connector=aiohttp.TCPConnector(ssl=trusted, force_close=True), headers=headers
            ) as session,
            session.get(TRUSTED) as response,
        ):
            authority = (await response.json())["data"]["client-ca-file"]
            async with played_kubelet(client_ca=authority) as kubelet:
                server.registry.create_object(kubelet.node("n"))
                server.registry.create_object(POD)
                yield Place(server, session, kubelet)


async def test_a_kubelet_sees_who_asks_and_that_it_may() -> None:
    """As with kubeadm: the CA of the client's certificate is in a ConfigMap, and its group may do everything."""
    async with place() as here:
        async with here.session.get("/api/v1/namespaces/default/pods/a/log") as response:
            assert (response.status, await response.text()) == (200, "hello\n")
        (asked,) = here.kubelet.asked
        assert asked.who == ("kube-apiserver-kubelet-client", "kubeadm:cluster-admins")
        attributes = {"verb": "create", "resource": "nodes", "subresource": "proxy", "name": "n"}
        spec = {"user": asked.who[0], "groups": [asked.who[1]], "resourceAttributes": attributes}
        review = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        async with here.session.post(review, json={"spec": spec}) as response:
            assert (await response.json())["status"]["allowed"]
        async with here.session.post(review, json={"spec": spec | {"groups": []}}) as response:
            assert not (await response.json())["status"]["allowed"]


async def test_a_server_that_starts_again_says_its_new_authority() -> None:
    """Its CA is made anew; the ConfigMap is there once."""
    server = ApiServer("a")
    said = []
    for _ in range(2):
        async with server:
            trusted = ssl.create_default_context(cadata=server.ca_pem)
            async with aiohttp.ClientSession(server.url) as session, session.get(TRUSTED, ssl=trusted) as response:
                said.append((await response.json())["data"]["client-ca-file"] == server.ca_pem)
    assert said == [True, True]


async def test_any_path_of_a_kubelet() -> None:
    """With any method, the query as it is, and without the caller's credentials; answers come as they are."""
    async with place() as here:
        proxy = "/api/v1/nodes/n/proxy"
        async with here.session.get(f"{proxy}/healthz?verbose=1&x=a%20b") as response:
            assert (response.status, await response.text()) == (200, "hello\n")
        async with here.session.post(f"{proxy}/run/x/", data=b"body", headers={"Impersonate-User": "admin"}) as refused:
            assert refused.status == 403  # it is heeded here, and `admin` that acts as `admin` may do what roles say
        here.kubelet.answer = b"HTTP/1.1 302 X\r\nLocation: /y\r\nX-Mine: 1\r\nContent-Length: 5\r\n\r\nwords"
        async with here.session.post(f"{proxy}/run/x/", data=b"body", allow_redirects=False) as response:
            assert (response.status, response.headers["X-Mine"], await response.text()) == (302, "1", "words")
        async with here.session.get(proxy, allow_redirects=False) as response:
            assert (response.status, response.headers["Location"]) == (301, f"{proxy}/")
        for method in ("PUT", "PATCH", "DELETE"):
            async with here.session.request(method, f"{proxy}/z", allow_redirects=False) as response:
                assert response.status == 302
    asked = [(request.method, request.target) for request in here.kubelet.asked]
    assert asked[:2] == [("GET", "/healthz?verbose=1&x=a%20b"), ("POST", "/run/x/")]
    assert [method for method, _ in asked[2:]] == ["PUT", "PATCH", "DELETE"]
    assert here.kubelet.bodies == [b"body"]
    assert not any("authorization" in request.headers for request in here.kubelet.asked)


async def test_a_node_that_is_not_there_or_does_not_answer() -> None:
    """404 and 503; a pod whose Node is not there has the log of a played container, and no streams."""
    async with place() as here:
        closed = here.kubelet.node("closed")
        closed["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"] = 1
        here.server.registry.create_object(closed)
        status = {
            "startTime": "2026-01-01T00:00:00Z",
            "containerStatuses": [{"name": "main", "state": {"running": {}}}],
        }
        played = {**POD, "metadata": {"name": "b", "namespace": "default"}, "spec": {**POD["spec"], "nodeName": "gone"}}
        here.server.registry.create_object(played)
        target = Target(here.server.registry.cluster.type_of("", "v1", "pods"), "default", "b", "status")
        here.server.registry.patch(target, "application/merge-patch+json", {"status": status})
        assert (await here.get("/api/v1/nodes/gone/proxy/x"))["code"] == 404
        body = await here.get("/api/v1/nodes/closed/proxy/x")
        why = "error trying to reach service: dial tcp 127.0.0.1:1: connect: connection refused"
        assert (body["code"], body["message"]) == (503, why)
        async with here.session.get("/api/v1/namespaces/default/pods/b/log?tailLines=1") as response:
            assert (await response.text()).startswith("step ")
        async with here.session.post("/api/v1/namespaces/default/pods/b/exec?command=ls") as response:
            assert response.status == 400
            assert "there is nothing to enter" in (await response.json())["message"]


async def open_stream(here: Place) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection into the container, as a client has it."""
    trusted = ssl.create_default_context(cadata=here.server.ca_pem)
    reader, writer = await asyncio.open_connection("127.0.0.1", here.server.port, ssl=trusted)
    path = "/api/v1/namespaces/default/pods/a/exec?command=sh&stdin=1"
    head = "Host: x\r\nAuthorization: Bearer t\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1"
    writer.write(f"POST {path} HTTP/1.1\r\n{head}\r\n\r\n".encode())
    assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
    return reader, writer


async def test_much_goes_through_a_stream_in_both_directions() -> None:
    """Nothing is lost, also where one side reads slowly."""
    sent = bytes(range(256)) * 20_000
    async with place() as here:
        reader, writer = await open_stream(here)
        writer.write(sent)
        assert await reader.readexactly(len(sent)) == sent
        writer.transport.abort()


async def test_a_stream_ends_on_both_sides_when_one_ends() -> None:
    """The client, the kubelet, or the server."""
    async with place() as here:
        _, writer = await open_stream(here)
        assert len(here.kubelet.open) == 1
        writer.transport.abort()
        await until(lambda: not here.kubelet.open)
        reader, writer = await open_stream(here)
        for connection in here.kubelet.open:
            connection.transport.abort()
        assert await reader.read() == b""
        writer.transport.abort()
        reader, writer = await open_stream(here)
        here.server.drop_connections()
        await until(lambda: not here.kubelet.open)
        writer.transport.abort()
