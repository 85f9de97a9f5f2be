"""What an API server asks of kubelets: logs and streams of pods, and what it says when they refuse."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
import attrs
import pytest

from multikueue.core.model.names import Json
from multikueue.testing import until
from tests.conformance.client import Answer, ConformanceClient, OpenNamespace
from tests.conformance.kubelet import FINE, PlayedKubelet, played_kubelet
from tests.conformance.test_identities import RBAC, account

SPDY: Final = ("Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v4.channel.k8s.io")
NODES: Final = "/api/v1/nodes"


def websocket(protocol: str) -> tuple[str, ...]:
    """The headers of a client that speaks WebSockets."""
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    return "Upgrade: websocket", "Sec-WebSocket-Version: 13", key, f"Sec-WebSocket-Protocol: {protocol}"


def pod(name: str, node: str = "", *containers: str, init: str = "") -> Json:
    """A pod on a node."""
    spec: Json = {"containers": [{"name": name, "image": "x"} for name in containers or ("main",)]}
    if init:
        spec["initContainers"] = [{"name": init, "image": "x"}]
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@attrs.frozen
class Place:
    """A cluster with a node whose kubelet plays, and a namespace with pods."""

    cluster: ConformanceClient
    kubelet: PlayedKubelet
    namespace: str
    node: str

    @property
    def pods(self) -> str:
        """The path of the pods."""
        return f"/api/v1/namespaces/{self.namespace}/pods"

    async def add_node(self, node: Json) -> str:
        """Create a Node, whose status may come with it; returns its name."""
        code, body = await self.cluster.post(NODES, node)
        assert code == 201, body
        assert body["status"].items() >= node["status"].items()
        name: str = node["metadata"]["name"]
        return name

    async def add(self, *pods: Json) -> None:
        """Create pods."""
        for pod in pods:
            code, body = await self.cluster.post(self.pods, pod)
            assert code == 201, body

    async def log(self, name: str = "a", **options: str) -> Answer:
        """Ask for a log."""
        return await self.cluster.get(f"{self.pods}/{name}/log", params=options)

    async def upgrade(self, method: str, path: str, *headers: str, token: str = "") -> tuple[int, str]:
        """Ask for a connection; returns the code, and what comes back of `ping`, or the body."""
        plane = self.cluster.plane
        host, port = plane.url.removeprefix("https://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port), ssl=plane.tls)
        bearer = f"Authorization: Bearer {token or plane.token}"
        lines = [f"{method} {path} HTTP/1.1", "Host: x", bearer, "Connection: Upgrade", *headers, "", ""]
        try:
            writer.write("\r\n".join(lines).encode())
            with anyio.fail_after(5):
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                code = int(head.split(" ")[1])
                if code == 101:
                    writer.write(b"ping")
                    return code, (await reader.readexactly(4)).decode()
                length = int(head.split("content-length: ")[1].split("\r\n")[0])
                return code, (await reader.readexactly(length)).decode()
        finally:
            writer.transport.abort()


@asynccontextmanager
async def place(namespaced: OpenNamespace, **status: object) -> AsyncIterator[Place]:
    """A place with the pod `a` on the node."""
    async with namespaced() as (cluster, namespace), played_kubelet() as kubelet:
        here = Place(cluster, kubelet, namespace, f"node-of-{namespace}")
        await here.add_node(kubelet.node(here.node, **status))
        await here.add(pod("a", here.node))
        yield here


async def test_k1_a_log_is_asked_of_the_kubelet_with_its_options(namespaced: OpenNamespace) -> None:
    """By the first address in the order of types; false options and those of the API server are left out."""
    every = {"follow": "true", "previous": "1", "timestamps": "true", "sinceSeconds": "3", "tailLines": "0"}
    async with place(namespaced) as here:
        answers = [
            await here.log(),
            await here.log(container="main", limitBytes="10", **every),
            await here.log(
                sinceTime="2026-01-01T00:00:00.5+01:00", follow="false", insecureSkipTLSVerifyBackend="true"
            ),
        ]
    assert answers == [(200, {"text": "hello\n"})] * 3
    path = f"/containerLogs/{here.namespace}/a/main"
    assert [request.target for request in here.kubelet.asked] == [
        path,
        f"{path}?follow=true&limitBytes=10&previous=true&sinceSeconds=3&tailLines=0&timestamps=true",
        f"{path}?sinceTime=2025-12-31T23%3A00%3A00Z",
    ]
    assert not any("authorization" in request.headers for request in here.kubelet.asked)


async def test_k2_options_that_cannot_be_meant_are_refused(namespaced: OpenNamespace) -> None:
    """Without a word to the kubelet."""
    async with place(namespaced) as here:
        for options, code, message in (
            ({"tailLines": "x"}, 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
            (
                {"sinceTime": "now"},
                400,
                'parsing time "now" as "2006-01-02T15:04:05Z07:00": cannot parse "now" as "2006"',
            ),
            ({"tailLines": "-1"}, 422, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
            ({"limitBytes": "0"}, 422, "limitBytes: Invalid value: 0: must be greater than 0"),
            ({"stream": "Stdout"}, 422, "stream: Forbidden: may not be specified"),
            (
                {"sinceSeconds": "1", "sinceTime": "2026-01-01T00:00:00Z"},
                422,
                "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
            ),
        ):
            got, body = await here.log(**options)
            prefix = 'PodLogOptions "a" is invalid: ' if code == 422 else ""
            assert (got, body["message"]) == (code, prefix + message)
    assert here.kubelet.asked == []


async def test_k3_the_container_is_named_or_the_only_one(namespaced: OpenNamespace) -> None:
    """Init containers have logs, too, and are listed first."""
    async with place(namespaced) as here:
        await here.add(pod("two", here.node, "x", "y", init="i"), pod("one", here.node, "x", init="i"))
        assert (await here.log("two", container="i"))[0] == (await here.log("one"))[0] == 200
        unnamed, unknown = await here.log("two"), await here.log("two", container="z")
        stream = await here.upgrade("POST", f"{here.pods}/two/exec?command=ls", *SPDY)
    assert [request.target.rsplit("/", 1)[1] for request in here.kubelet.asked] == ["i", "x"]
    message = "a container name must be specified for pod two, choose one of: [i x y]"
    assert (unnamed[0], unnamed[1]["message"]) == (400, message)
    assert (unknown[0], unknown[1]["message"]) == (400, "container z is not valid for pod two")
    assert stream[0] == 400
    assert message in stream[1]


async def test_k4_a_pod_without_a_node_has_an_empty_log_and_no_streams(namespaced: OpenNamespace) -> None:
    """The log looks like that of a silent container."""
    async with place(namespaced) as here:
        await here.add(pod("waits"))
        assert await here.log("waits") == (204, {"text": ""})
        for subresource in ("exec", "attach", "portforward"):
            code, body = await here.upgrade("POST", f"{here.pods}/waits/{subresource}", *SPDY)
            assert (code, "pod waits does not have a host assigned" in body) == (400, True)


async def test_k5_a_kubelet_that_cannot_be_asked(namespaced: OpenNamespace) -> None:
    """Each cause in its words; without a port it is 10250."""
    async with place(namespaced) as here:
        address = here.kubelet.node("x")["status"]["addresses"]
        closed = {"addresses": address, "daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}}
        for name, status in (("closed", closed), ("nowhere", {}), ("named", {"addresses": address})):
            node = here.kubelet.node(f"{name}-{here.namespace}")
            await here.add(pod(name, await here.add_node({**node, "status": status})))
        said = {name: await here.log(name) for name in ("closed", "nowhere", "named")}
        stream = await here.upgrade("POST", f"{here.pods}/closed/exec?command=ls", *SPDY)
    assert {code for code, _ in said.values()} == {500}
    messages = {name: body["message"] for name, (_, body) in said.items()}
    url = f"https://127.0.0.1:1/containerLogs/{here.namespace}/closed/main"
    refused = "dial tcp 127.0.0.1:1: connect: connection refused"
    assert messages["closed"] == f'Get "{url}": {refused}'
    assert messages["nowhere"] == "no preferred addresses found; known addresses: []"
    assert "https://127.0.0.1:10250/" in messages["named"]
    assert (stream[0], f'"message":"error dialing backend: {refused}"' in stream[1]) == (500, True)


@pytest.mark.parametrize("code", [301, 400, 401, 403, 404, 405, 406, 409, 415, 418, 422, 429, 500, 502, 503, 504])
async def test_k6_what_a_kubelet_refuses(namespaced: OpenNamespace, code: int) -> None:
    """The code is kept; its words are with 400, 403, 406, 415, 500 and 502."""
    async with place(namespaced) as here:
        here.kubelet.answer = f"HTTP/1.1 {code} X\r\nContent-Length: 5\r\n\r\nwords".encode()
        got, body = await here.log()
    reason, message, details = REFUSALS[code]
    assert (got, body["code"], body.get("reason", "")) == (code, code, reason)
    assert body["message"] == message
    assert body.get("details") == details


ABOUT: Final = {"name": "a", "kind": "pods/log"}
UNTOLD: Final = "the server responded with the status code {} but did not return more information ( pods/log a)"
REFUSALS: Final[dict[int, tuple[str, str, Json | None]]] = {
    301: ("", UNTOLD.format(301), ABOUT),
    400: ("BadRequest", "words", None),
    401: ("Unauthorized", "the server has asked for the client to provide credentials ( pods/log a)", ABOUT),
    403: ("Forbidden", "words ( pods/log a)", ABOUT),
    404: ("NotFound", "the server could not find the requested resource ( pods/log a)", ABOUT),
    405: (
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource ( pods/log a)",
        ABOUT,
    ),
    406: ("NotAcceptable", "words ( pods/log a)", ABOUT),
    409: ("Conflict", "the server reported a conflict ( pods/log a)", ABOUT),
    415: ("UnsupportedMediaType", "words ( pods/log a)", ABOUT),
    418: ("", UNTOLD.format(418), ABOUT),
    422: ("Invalid", "the server rejected our request due to an error in our request ( pods/log a)", ABOUT),
    429: (
        "TooManyRequests",
        "the server has received too many requests and has asked us to try again later ( pods/log a)",
        ABOUT,
    ),
    500: ("InternalError", "Internal error occurred: words", {"causes": [{"message": "words"}]}),
    502: (
        "InternalError",
        'an error on the server ("words") has prevented the request from succeeding ( pods/log a)',
        ABOUT,
    ),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request ( pods/log a)", ABOUT),
    504: (
        "Timeout",
        "the server was unable to return a response in the time allotted, but may still be processing the request "
        "( pods/log a)",
        ABOUT,
    ),
}


@pytest.mark.parametrize(
    ("method", "asked", "expected"),
    [
        (
            "POST",
            "exec?command=sh&command=-c&stdin=true&stdout=true",
            "exec/{}/a/main?command=sh&command=-c&input=1&output=1",
        ),
        ("POST", "exec?command=a&stderr=1&tty=1&stdin=false", "exec/{}/a/main?command=a&error=1&tty=1"),
        ("POST", "attach?stdout=true&command=x", "attach/{}/a/main?output=1"),
        ("POST", "portforward", "portForward/{}/a"),
        ("GET", "exec?command=a&stdin=1", "exec/{}/a/main?command=a&input=1"),
        ("GET", "portforward?ports=80&ports=81", "portForward/{}/a?port=80%2C81"),
    ],
)
async def test_k7_a_stream_is_passed_through(namespaced: OpenNamespace, method: str, asked: str, expected: str) -> None:
    """SPDY, and WebSockets of a client that knows no newer ones, with the client's headers but for its credentials."""
    headers = SPDY if method == "POST" else websocket("v4.channel.k8s.io")
    async with place(namespaced) as here:
        assert await here.upgrade(method, f"{here.pods}/a/{asked}", *headers) == (101, "ping")
    (request,) = here.kubelet.asked
    assert (request.method, request.target) == (method, "/" + expected.format(here.namespace))
    assert request.headers["upgrade"] == ("SPDY/3.1" if method == "POST" else "websocket")
    assert request.headers["x-forwarded-for"] == "127.0.0.1"
    assert "authorization" not in request.headers


async def test_k8_what_does_not_become_a_stream(namespaced: OpenNamespace) -> None:
    """A refusal comes as it is, with any code; what is neither is a 500; a request for no stream is a 400."""
    async with place(namespaced) as here:
        path = f"{here.pods}/a/exec?command=ls"
        for code in (400, 403, 404, 503):
            here.kubelet.answer = f"HTTP/1.1 {code} X\r\nContent-Length: 5\r\n\r\nwords".encode()
            assert await here.upgrade("POST", path, *SPDY) == (code, "words")
        here.kubelet.answer = FINE + b" "  # not what makes it switch
        code, body = await here.upgrade("POST", path, *SPDY)
        assert (code, "invalid upgrade response: status code 200" in body) == (500, True)
        code, answer = await here.cluster.post(path, {})
        assert (code, answer["message"]) == (400, "Upgrade request required")
        assert (await here.upgrade("PUT", path, *SPDY))[0] == 405


async def test_k9_newer_websockets_come_as_they_are_where_the_node_declares_them(namespaced: OpenNamespace) -> None:
    """`ExtendWebSocketsToKubelet`; elsewhere a real API server translates them to SPDY."""
    async with place(namespaced, declaredFeatures=["ExtendWebSocketsToKubelet"]) as here:
        headers = websocket("v5.channel.k8s.io")
        assert await here.upgrade("GET", f"{here.pods}/a/exec?command=ls", *headers) == (101, "ping")
    assert here.kubelet.asked[0].method == "GET"


async def test_k10_a_stream_takes_the_right_to_create_one(namespaced: OpenNamespace) -> None:
    """With `get` alone, which WebSockets come as, nobody enters a container."""
    async with place(namespaced) as here:
        namespace, _, headers = await account(here.cluster)
        token = headers["Authorization"].removeprefix("Bearer ")
        path, seen = f"{here.pods}/a/exec?command=ls", []
        for verbs in (["get"], ["create"], ["get", "create"]):
            await allow(here, namespace, verbs)
            seen.append(
                [
                    (await here.upgrade("GET", path, *websocket("v4.channel.k8s.io"), token=token))[0],
                    (await here.upgrade("POST", path, *SPDY, token=token))[0],
                ]
            )
    assert seen == [[403, 403], [403, 101], [101, 101]]


async def allow(here: Place, account_namespace: str, verbs: list[str]) -> None:
    """Let the account `robot` of another namespace do this with `pods/exec`."""
    path = f"/apis/{RBAC}/v1/namespaces/{here.namespace}"
    rule = {"verbs": verbs, "apiGroups": [""], "resources": ["pods/exec"]}
    head: Json = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": "r"}}
    role = {**head, "kind": "Role", "rules": [rule]}
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": account_namespace}
    reference = {"apiGroup": RBAC, "kind": "Role", "name": "r"}
    binding = {**head, "kind": "RoleBinding", "subjects": [subject], "roleRef": reference}
    if (await here.cluster.post(f"{path}/roles", role))[0] == 409:
        assert (await here.cluster.put(f"{path}/roles/r", role))[0] == 200
    assert (await here.cluster.post(f"{path}/rolebindings", binding))[0] in (201, 409)
    user = f"system:serviceaccount:{account_namespace}:robot"
    review = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    head = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}

    async def allowed(verb: str) -> bool:
        asked = {"namespace": here.namespace, "verb": verb, "resource": "pods", "subresource": "exec"}
        _, body = await here.cluster.post(review, {**head, "spec": {"user": user, "resourceAttributes": asked}})
        return bool(body["status"]["allowed"])

    async def in_force() -> bool:
        return [await allowed(verb) for verb in ("get", "create")] == [verb in verbs for verb in ("get", "create")]

    await until(in_force)
